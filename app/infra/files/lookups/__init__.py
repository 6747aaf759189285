"""Looking up keys: which files may have a key, where its live row is, and local uncompressed copies for such reads."""
