"""What users install: the command line, the typed client, the Spark data source, the demos."""
