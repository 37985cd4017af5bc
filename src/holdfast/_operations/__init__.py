"""Every operation once, as a coroutine over the backend port."""
