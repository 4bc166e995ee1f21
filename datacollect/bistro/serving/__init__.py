"""The shells of services and witnesses: sockets, clocks, processes."""
