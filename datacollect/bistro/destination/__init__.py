"""What the destination of an event makes of what bistros report."""
