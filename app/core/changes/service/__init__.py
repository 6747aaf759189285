"""Pages of the feed, and the corrections of a range."""
