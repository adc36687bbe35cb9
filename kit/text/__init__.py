"""Text from outside: escaped for display, without secrets, parsed as a number; and numbers with their nouns."""
