"""Text from outside: escaped for a person's eyes, freed of secrets, read as a number."""
