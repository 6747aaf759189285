"""Shares, recipients and what they see, in Postgres."""
