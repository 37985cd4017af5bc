"""The files of a checkpoint: storing a snapshot, reading, comparing, blaming."""
