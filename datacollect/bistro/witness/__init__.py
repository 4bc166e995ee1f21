"""A witness: says by when it has seen a log so far, and that the log has only grown."""
