"""What `make bench` measures: cost targets and peers, side by side in one run."""
