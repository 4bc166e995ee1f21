"""What agents and collectors say to each other: messages, patterns, names of files."""
