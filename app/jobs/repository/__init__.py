"""Jobs in Postgres: accept, claim, commit slots, ends, outbox."""
