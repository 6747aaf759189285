"""Views in Postgres, and their part in core transactions."""
