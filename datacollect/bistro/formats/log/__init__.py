"""A log that only grows, as C2SP writes it: notes, checkpoints, tree, tiles, proofs, entries."""
