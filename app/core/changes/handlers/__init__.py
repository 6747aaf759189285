"""HTTP: pages of changes, server-sent events, corrections."""
