"""The auditor's side: logs read whole, and what contradicts them."""
