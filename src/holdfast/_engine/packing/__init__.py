"""How segments are stored: compressed or as they are, alone or many in one block."""
