"""What parties write, sign and read: each format once, for all of them."""
