"""Plans executed, step by step, proved and undone: the engine at work."""
