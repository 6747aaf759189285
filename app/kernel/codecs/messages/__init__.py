"""Messages of topics: Avro, Protobuf, JSON and texts, to the JSON records that other codecs read; rows as Avro.

framing                     Confluent's wire format: the id of a schema in front of the bytes
avro_schema, proto_schema   a schema of a registry: its values as JSON values, and its fields as those of a dataset
avro_file                   the records of a file of Avro
reading                     what both have in common: columns, and values that JSON cannot represent
avro_output                 Arrow values as Avro, and the schema of their type
records                     a message to a record: rows, changes of rows, Debezium's envelopes, tombstones
"""
