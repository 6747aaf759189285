"""Parameters of requests: headers, query options, pages, byte ranges, and the members that a PATCH replaces."""
