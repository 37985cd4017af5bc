"""The storage technologies, one folder each."""
