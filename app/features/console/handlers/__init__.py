"""HTTP: sign-in, pages and their forms, and the files that they load."""
