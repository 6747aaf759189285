"""The numbers of all tenants in Postgres, and which process gathers them."""
