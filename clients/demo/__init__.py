"""Headwater on real data: each demo starts a service of its own, works on it with the typed client, and ends."""
