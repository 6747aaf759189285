"""What gathers the samples, in one process at a time."""
