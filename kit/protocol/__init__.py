"""Groups between the classic protocol and the consumer protocol (KIP-848): stages, facts and checks."""
