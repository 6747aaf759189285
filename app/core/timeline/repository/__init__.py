"""The timeline in Postgres: the commit transaction, versions, files, read leases, archives."""
