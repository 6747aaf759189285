"""Waiting requests: subscriptions to a dataset, one shared poll for all that wait for it, and their credentials."""
