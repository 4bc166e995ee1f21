"""Plans of tests: hosts, budgets, rounds without overlap, leases, tickets."""
