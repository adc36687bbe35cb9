"""Provide what the lab needs of Java: jars, a compiler, command lines."""
