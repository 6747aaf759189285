"""The worker process: tasks and the Spark engine."""
