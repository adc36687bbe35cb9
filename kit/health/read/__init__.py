"""Records' times and offsets of a time, from the brokers."""
