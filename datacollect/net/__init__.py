"""What hosts say to each other below any purpose: keys, tickets, TLS, HTTP, names, deadlines."""
