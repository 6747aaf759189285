"""HTTP: savepoints, tags, restores, rollbacks and comparisons."""
