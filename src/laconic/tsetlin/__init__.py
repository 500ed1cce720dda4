"""Tsetlin Machines: flat, convolutional and coalesced."""
