"""Plans carried out, step by step, proved and undone: the engine at work."""
