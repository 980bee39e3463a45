"""Asking a model: its logits, loss and gradients for given tokens, and text that it continues."""
