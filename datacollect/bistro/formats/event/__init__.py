"""Events: who hands in what to whom until when, and what of it can be changed afterwards."""
