"""Methods whose clients train Tsetlin Machines."""
