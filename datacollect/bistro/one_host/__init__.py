"""An event on one host: all its servers behind one port, as one tree of processes."""
