"""The operator in measuring: leases taken, tests asked for, rows from what both ends say."""
