"""Every operation once, as a coroutine over the port; no SQL, no threads, no clock."""
