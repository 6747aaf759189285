"""Jobs in Postgres: accept, claim, hold, commit slots, ends, outbox."""
