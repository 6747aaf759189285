"""Use cases: what readers see of the files of a table is rendered once, and kept within bounds."""
