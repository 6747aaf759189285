"""Use cases of the files of tables."""
