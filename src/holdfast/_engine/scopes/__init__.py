"""Scopes: a part of a store that is a store of its own."""
