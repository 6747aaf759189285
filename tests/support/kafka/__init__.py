"""A real Kafka broker and a schema registry on the loopback interface, and what tests produce to them."""
