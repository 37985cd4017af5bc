"""Transcripts in every provider's shape, as pure values."""
