"""The operations of the service: one class of methods for each feature."""
