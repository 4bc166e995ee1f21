"""What agents and collectors say to each other, and how: tickets, TLS, messages, sessions."""
