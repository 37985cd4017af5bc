"""Typed records over threads: conversations, agents, documents."""
