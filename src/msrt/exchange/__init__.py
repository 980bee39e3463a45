"""Weights in and out: Hugging Face folders and checkpoints, and the model that either of them holds."""
