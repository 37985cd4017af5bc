"""Tests of the recipe for LlamaIndex, with workflows that need no model."""
