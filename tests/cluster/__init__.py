"""A cluster of real processes, for as long as the tests of the folder run."""
