"""HTTP: jobs, the response of an accepted job, and waiting for its end."""
