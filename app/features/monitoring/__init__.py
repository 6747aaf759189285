"""Monitoring: the numbers of the service, of what its processes count and of what the database knows of all tenants.

A process counts what it does itself, such as requests and the stages of jobs. What the database knows, such as
waiting jobs, is gathered by one of the processes, the leader, once an interval and for all tenants. `values.py`
declares the metrics that are gathered; a `Sample` is one value of one of them. Alerts are conditions on these samples.

A worker samples each dataset about a minute after its commits, and commits count their writes by the hour: the overview
of a tenant reads these, and no list of files.

    headwater_consumer_lag_changes_max 1204
"""
