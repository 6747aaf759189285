"""The reconciler that reports to a Hive metastore, and the reports in the API."""
