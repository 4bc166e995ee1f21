"""What services and witnesses keep on the disk."""
