"""Signed statements about uploads: receipts and batches of bistros, segments, verdicts."""
