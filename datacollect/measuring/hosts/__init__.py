"""What bytes cost this machine: probes, and what many repeats of them say."""
