"""Wake-ups through Redis. They carry ids only; losing one costs latency, since every receiver also polls."""
