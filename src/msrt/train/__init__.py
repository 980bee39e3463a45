"""A training run: set up, the loop, and the files it leaves behind."""
