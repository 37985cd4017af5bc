"""Tests of the adapter for the Agent Development Kit, with a scripted model."""
