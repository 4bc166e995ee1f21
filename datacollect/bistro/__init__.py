"""Handing in by a deadline without sending first: events, timestamps, witnesses, receipts."""
