"""The destination folder: what has come, written, synced, recorded, verified; what it says."""
