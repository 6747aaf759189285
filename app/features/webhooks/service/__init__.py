"""Webhooks in the API; messages, signatures and deliveries in the worker."""
