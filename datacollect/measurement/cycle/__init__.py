"""Which tests of a cycle run when: rounds without overlap, budgets, leases of hosts."""
