"""What clients predict by, as things of their own: kinds of models, how they read raw rows, their file."""
