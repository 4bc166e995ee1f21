"""Protocol of agents and collectors: messages, patterns, names of files."""
