"""A cluster on its way to KRaft (KIP-866): where it stands, and whether both stores hold the same."""
