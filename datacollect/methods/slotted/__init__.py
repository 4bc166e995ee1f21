"""Store-and-forward plans in slots, on the time-expanded graph."""
