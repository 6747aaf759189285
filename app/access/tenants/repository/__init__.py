"""Tenants and keys in Postgres: authentication with the service's login, administration with a login of its own."""
