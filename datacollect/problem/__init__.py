"""The problem of collecting: hosts, links, what is shared, held and released."""
