"""Plans of groups, fleets and offsets, and the actors that write."""
