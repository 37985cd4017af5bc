"""Searching messages, and the index that makes it fast."""
