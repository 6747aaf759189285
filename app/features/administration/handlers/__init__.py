"""HTTP: tenants, keys, and the identity of a key."""
