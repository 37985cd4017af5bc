"""Tests of the OpenAI Agents adapter, with a scripted model."""
