"""What users install: the command line, the export of tenants, the typed client, the Spark data source, the demos."""
