"""Published figures, what ours are, and the runs that tell: `laconic reproduce`."""
