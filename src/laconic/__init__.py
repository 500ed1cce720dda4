"""Laconic: personalised federated learning in few bytes."""

__version__ = "0.1.0.dev0"
