"""Methods on neural networks."""
