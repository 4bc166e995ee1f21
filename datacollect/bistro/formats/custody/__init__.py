"""What bistros and the destination sign about uploads: receipts, batches, segments, verdicts."""
