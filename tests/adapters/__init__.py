"""Tests of the adapters, a package with fixtures of its own."""
