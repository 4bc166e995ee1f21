"""Pulls in time slots: what moves by which hop in each, and what relays keep meanwhile."""
