"""The inner names of holdfast that benchmarks use.

When an inner module moves or a name in it changes, it is edited here alone.
"""
