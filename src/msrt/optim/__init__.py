"""Parameters as one flat vector, gradient clipping, and AdamW on it."""
