"""``make demo``: the main job on the embedded lab."""
