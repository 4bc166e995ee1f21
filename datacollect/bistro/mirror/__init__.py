"""Copies of all logs of an event, and what is made of them where the logs themselves are lost."""
