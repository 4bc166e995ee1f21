"""The coordinated method: all hosts, routes and capacities at once."""
