"""Table services: policies that start them, the run of a rewrite, its publication in a commit slot."""
