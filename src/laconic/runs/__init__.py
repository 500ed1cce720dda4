"""Experiments: their settings, the loop, what is recorded, and what the terminal shows meanwhile."""
