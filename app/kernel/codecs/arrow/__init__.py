"""Arrow and Parquet input: checks, lossless casts to a schema, bounded steps, and the flat form of changes."""
