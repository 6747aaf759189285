"""JSON and NDJSON: rows and changes to Arrow, and Arrow to JSON."""
