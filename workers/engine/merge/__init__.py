"""Merging one file group: appends, logs, deletion vectors, or rewritten files, and the report of the task."""
