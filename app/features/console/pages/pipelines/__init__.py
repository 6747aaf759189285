"""Pages of what moves rows: jobs, lineage, sources, views, webhooks and exports."""
