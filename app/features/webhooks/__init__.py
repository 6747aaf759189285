"""Webhooks: the feed of a dataset, or the events of its partitions, sent to a receiver in order, at least once.

A receiver is a URL, to which signed messages are posted, or a topic of Kafka, which gets changes only.

`handlers/webhooks.py` registers and changes them, `handlers/deliveries.py` lists their messages and sends them again;
`schemas.py` has the JSON. A webhook has a consumer: the changes before its position were sent, or given up.

A commit makes the consumer due. `service/deliver.py` then makes the next message (`service/message.py` reads the
changes), records it before it is sent, and sends it to the receiver. What the receiver responds is recorded by
`repository/deliveries.py`; a message that failed is retried. `ports.py` says what a kind of receiver is:
`receivers/url.py` signs messages and posts them, and `receivers/topic.py` writes changes to a topic of Kafka.
`service/webhooks.py` is what the API does, `repository/webhooks.py` stores it.

    POST /webhooks   {"dataset": "orders", "url": "https://hooks.example.com/headwater", "since": "earliest"}
    POST /webhooks/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2/redeliveries
"""
