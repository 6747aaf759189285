"""Waiting requests: subscriptions to a dataset, and one shared poll for all that wait for it."""
