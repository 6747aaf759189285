"""CSV (RFC 4180): record boundaries, rows to Arrow, and Arrow to CSV."""
