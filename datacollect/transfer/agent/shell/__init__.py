"""What joins an agent's core to sockets, files, threads and clocks."""
