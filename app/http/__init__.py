"""HTTP: one module per resource, and what they share."""
