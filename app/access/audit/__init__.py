"""The audit: who requested what, when, from where, and the result.

    values        `Access`: a decision about access; `Act`: an administrative request; `AuditEntry`: a row
    tables        `audit`, to which the service's roles may add rows, and which they may not change
    repository    `AuditStore`
    service       `Acts` records administrative requests, `AccessCounts` counts all others, `ReadAudit` lists rows

An administrative request is one row, in the transaction of what it does: `app.infra.db.acts` has the interface.
Everything else is counted in the process and added as rows with a count by a thread. `app.http.audited` calls both.
"""
