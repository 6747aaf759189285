"""Use cases: the table format and ports; no framework and no store."""
