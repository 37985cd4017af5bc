"""SQL that the backends share: statements, rows, reads, conflicts. No connections.

Everything here is pure: it says which named statement to run with which values and what
its rows mean. Each backend runs the statements, blocking or awaited.
"""
