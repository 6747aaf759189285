"""What each page reads from the API, and what its forms send to it."""
