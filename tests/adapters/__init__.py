"""Tests of the adapters: a package, since it has fixtures of its own."""
