"""From schedules to scripts and job files of other tools, and back from what has arrived."""
