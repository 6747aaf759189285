"""The receivers of webhooks, by kind: a URL, or a topic of Kafka."""
