"""Pages for those who administer: keys, tenants, usage, the audit, shares and the service."""
