"""The organiser: events, tickets for people, what is changed afterwards."""
