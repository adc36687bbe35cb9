"""A history of commits and log ends: is a group well, how old is what it reads next, how will it continue."""
