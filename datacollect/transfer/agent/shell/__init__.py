"""The agent's shell: joins its core to sockets, files, threads and clocks."""
