"""Webhooks and deliveries in Postgres."""
