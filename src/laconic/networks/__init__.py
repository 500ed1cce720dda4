"""Small neural networks as flat vectors, and what is done to vectors before they travel."""
