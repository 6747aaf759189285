"""Which datasets are due for maintenance, and what their file groups consist of, in Postgres."""
