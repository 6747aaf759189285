"""Spark: the session, the shuffle and the merge."""
