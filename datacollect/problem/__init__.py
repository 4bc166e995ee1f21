"""What must be collected: hosts, links, what is shared, held and released."""
