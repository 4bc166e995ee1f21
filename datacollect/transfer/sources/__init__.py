"""Where bytes come from: one protocol, and a folder for each kind of source."""
