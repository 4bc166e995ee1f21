"""A log service: takes entries, keeps them, has witnesses sign, publishes proofs."""
