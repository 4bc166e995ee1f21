"""To which bistro something goes, and what is to be collected from them: rules and tables."""
