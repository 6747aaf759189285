"""Table formats on Spark, each with the settings that its documentation advises for upserts and a change feed.

A release of Spark is an environment of its own, since no release is supported by all of them. Jars come from Maven
Central through Spark's own resolver.
"""
