"""Many groups toggled, wave by wave."""
