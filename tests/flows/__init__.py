"""Flows over HTTP on a real deployment, for as long as the tests of the folder run."""
