"""HTTP handlers of the Iceberg catalogue.

catalogue      configuration, namespaces, lists of tables and views
error_form     errors in the form of the protocol, and of OAuth
tables         load one, renew the keys of its files, reports of scans
tokens         tokens for clients that have the id of an API key and the key
"""
