"""Which version a request means; naming, restoring and comparing versions; the policy of tags."""
