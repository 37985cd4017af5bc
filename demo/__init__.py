"""What `make demo` shows: an agent is killed in the middle of its work and goes on.

`agent` is the part to copy from: how an agent saves its steps and records its effects.
"""
