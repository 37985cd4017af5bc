"""Pure values: records, references, the codec and the rope; no input, no output."""
