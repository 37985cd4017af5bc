"""The recorder of an agent's loop: what it holds, stores and calls."""
