"""The auditor: logs read whole, and what contradicts them."""
