"""The layered network, and what searches on networks share: arcs, pools, ties, preferences."""
