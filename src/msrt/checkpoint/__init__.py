"""Checkpoints in MindFormers' folder layout: written whole or not at all, checked when they are read."""
