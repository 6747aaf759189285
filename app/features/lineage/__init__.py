"""Lineage: what the datasets of a tenant are made of, and where their rows go.

Nodes are datasets, views, sources, webhooks, exports, consumers and shares. An edge leads from where rows come from to
where they go, with how many changes have not gone there yet. All of it is what the other features have stored: the
graph is made on request, from the catalogue alone, for what the key may see.

- values.py: nodes and edges; service.py: the graph that a key sees; columns.py: which columns go into which
- events.py, emit.py, loops.py: events of OpenLineage about jobs that have ended
- providers.py: what it is made from; handlers.py, schemas.py: the resource `lineage`

    GET /lineage?dataset=orders&columns=true
"""
