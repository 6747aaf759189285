"""Definitions of datasets: what a user registers, the rules for it, and how a schema changes.

settings                                 the settings whose values stand alone, each declared once
new_dataset, schema_change               requests as users send them
dataset_definition                       the entry: `define_dataset` checks every rule and returns a definition
dataset_rules, merge_rules,              the rules, each a small function that yields the faults it finds
partition_rules, policy_rules
evolution, schema_merge                  the next schema: by a request, or by the rows of a write (`merge_schema`)
hive_table                               a definition as a table of a Hive metastore
"""
