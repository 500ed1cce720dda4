"""Real nodes: folders with keys for a server and its nodes, the processes that run there, and runs on them."""
