"""Folders and prefixes of tenants, outside of the storage of the service.

admitted      which are below the roots that the operator names
destination   files that are written to them
"""
