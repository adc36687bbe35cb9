"""One group along KIP-125's path: its members replaced, its toggle set."""
