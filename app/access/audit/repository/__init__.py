"""The audit in Postgres: entries, and the acts that are recorded in the transactions of what they do."""
