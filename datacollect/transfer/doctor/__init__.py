"""Doctor: whether a collection, or an agent, would work here, and what to mend first."""
