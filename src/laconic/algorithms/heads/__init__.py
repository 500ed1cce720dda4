"""Methods that train nothing but a linear head, on features that both ends have."""
