"""Reading for result files: tasks of exports and of read jobs, and the text formats that they write."""
