"""Tests of the recipe for CrewAI, with flows that need no model."""
