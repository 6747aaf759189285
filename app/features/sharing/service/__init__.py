"""Shares and recipients of a tenant, and the tables that a recipient sees."""
