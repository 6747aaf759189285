"""Postgres: the one way to connect, and what all tables share. The tables are in the rooms, in `tables`.

    session     `Database`: transactions of a tenant, of a credential, or of the relay
    columns     `metadata`, and columns and references of one form each
    document    values of the table format as JSON columns
    any_of      membership in a list of any length
    lease_end   when a lease that is given now runs out

A connection takes the role `headwater_app` when it is opened, and a transaction sets its tenant when it begins; row
level security hides all other tenants. So no statement names the tenant, and a statement without one finds no rows:

    with database.tenant(tenant_id) as connection:
        connection.execute(select(heads.c.version).where(heads.c.dataset_id == dataset_id))
"""
