"""Segments as they are stored: compressed or plain, alone or many in one block."""
