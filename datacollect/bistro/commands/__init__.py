"""The commands of events: upload, verify, audit, timestamp, witness, event, bistro."""
