"""Frameworks for agents, keeping what they keep in a Holdfast store."""
