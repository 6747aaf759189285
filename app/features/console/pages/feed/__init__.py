"""Pages of the rows of a dataset and of its feed: what each row was, what changed it, and how to take it back."""
