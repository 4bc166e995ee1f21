"""The collector: fetches every byte once, verifies it, and survives whatever is killed."""
