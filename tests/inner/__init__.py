"""The inner names of holdfast that tests use.

A test imports what is public from `holdfast`, and other names from here: one module a
layer, backend or framework. When an inner module moves or a name in it changes, it is
edited here alone. A module here needs no optional dependency but that of its own room.
"""
