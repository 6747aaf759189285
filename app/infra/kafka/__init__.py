"""Kafka: brokers that may be connected to, offsets of topics, messages in ranges of offsets, schemas of a registry.

    connection    a cluster as a client states it, and the settings of librdkafka for it; errors of librdkafka
    offsets       the partitions of a topic and their offsets; those that a consumer group has committed
    messages      the messages in ranges of offsets
    writer        messages written to a topic, in transactions
    registry      a schema registry with Confluent's REST API

The caller has the rules for addresses (`app.infra.outbound`). Brokers name each other in their metadata, so these
addresses are checked too, before anything is read from them.
"""
