"""The operations of a recorder: what it holds in memory, stores and calls once."""
