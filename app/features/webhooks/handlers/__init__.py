"""HTTP: webhooks and their deliveries."""
