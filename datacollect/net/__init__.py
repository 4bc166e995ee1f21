"""Network layer of hosts, below any purpose: keys, tickets, TLS, HTTP, names, deadlines."""
