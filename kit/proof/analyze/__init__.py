"""Check what members delivered: each record once, no partition by two, no stall without an explanation."""
