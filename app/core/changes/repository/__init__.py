"""The changelog files of a feed in Postgres."""
