"""A module for each paper: `find_way(figure)` tells how a figure of it is measured again, or why it cannot be."""
