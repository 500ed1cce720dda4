"""Runs followed as they go, on a page of their own: `laconic live` reads run folders and writes nothing into them."""
