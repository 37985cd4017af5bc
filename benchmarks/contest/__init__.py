"""The same conversation in a Holdfast store and in others, side by side.

Each store is run in processes of its own (`worker`), so that no framework is imported
here, and in turns with the others, so that whatever else the machine does happens to
all of them. `peers` lists the stores, `stores` has a module for each technology, and
`figures` compares what was measured.
"""
