"""Sources in Postgres."""
