"""Postgres: the one way to connect, and what all tables share. The tables are in the rooms, in `tables`.

    session           `Database`: transactions of a tenant, of a credential, or of the relay
    columns           `metadata`, and columns and references of one form each
    stored_json       values as JSON columns: unknown members are refused, renamed ones keep their stored name
    any_of            membership in a list of any length
    times             when a lease that is given now runs out, by the clock of the database
    claims            rows that one worker holds until it ends or its lease runs out
    tenant_rotation   polls in which each tenant has an equal part
    acts              what the audit records in the transaction of what was done
    copying           the rows of all tables, for backups
    deletion_hold     keeps files of the storage while a backup copies them
    examination       what `doctor` checks of a database

A connection takes the role `headwater_app` when it is opened, and a transaction sets its tenant when it begins; row
level security hides all other tenants. So no statement names the tenant, and a statement without one finds no rows:

    with database.tenant(tenant_id) as connection:
        connection.execute(select(heads.c.version).where(heads.c.dataset_id == dataset_id))
"""
