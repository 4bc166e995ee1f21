"""Hosts that join an event by one line each: invitations, halves of keys, the event's file back."""
