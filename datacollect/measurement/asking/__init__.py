"""The operator's part in measuring: leases taken, tests asked for, rows from what both ends say."""
