"""The sync and the async API: stores, threads and records as callers use them."""
