"""Tool calls that are made once, the ledger of their effects, and grants."""
