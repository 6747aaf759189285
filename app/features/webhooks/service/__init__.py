"""Webhooks in the API; what messages hold, and deliveries, in the worker."""
