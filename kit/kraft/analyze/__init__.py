"""A cluster on its way to KRaft (KIP-866): its phase, and whether both stores hold the same."""
