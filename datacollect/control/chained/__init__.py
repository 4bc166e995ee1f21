"""Controllers whose routes are chains, cut through relays that hold nothing."""
