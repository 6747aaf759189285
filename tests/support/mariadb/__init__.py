"""A real MariaDB server for tests."""
