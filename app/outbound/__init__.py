"""What the service sends to places that its users name."""
