"""Identify people: by the operating system, and by the SSH keys that they have already."""
