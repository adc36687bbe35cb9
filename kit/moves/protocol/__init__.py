"""Plans that move groups between the classic protocol and the consumer protocol (KIP-848), and their actors."""
