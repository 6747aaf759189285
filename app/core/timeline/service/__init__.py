"""Publishing a commit, reading the timeline, and pinning the versions that a task reads."""
