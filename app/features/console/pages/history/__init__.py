"""Pages of what has happened to a dataset, and of what it consists: timeline, files, schema, consumers, quarantine."""
