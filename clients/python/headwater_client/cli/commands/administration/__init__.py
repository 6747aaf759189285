"""Commands for tenants, keys, usage and the audit."""
