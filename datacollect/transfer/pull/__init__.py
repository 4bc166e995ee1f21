"""The collector: lists sources, plans, fetches every byte once, survives whatever is killed."""
