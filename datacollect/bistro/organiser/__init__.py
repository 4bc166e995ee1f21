"""The organiser's side: events, tickets for people, what is changed afterwards."""
