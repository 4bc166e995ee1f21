"""Real transfers: agents, blind relays, and a collector that loses nothing."""
