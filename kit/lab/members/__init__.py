"""The lab's consumers and producers, of every release that it runs."""
