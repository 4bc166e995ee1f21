"""The destination folder: opened, walked and synced without ever leaving it."""
