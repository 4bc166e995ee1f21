"""From flows on arcs to paths and routes, in whole bytes."""
