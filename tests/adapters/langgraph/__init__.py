"""Tests of the LangGraph adapter, with graphs that need no model."""
