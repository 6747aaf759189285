"""The receivers of webhooks, by kind: `url.py` posts signed messages, `topic.py` writes to a topic of Kafka."""
