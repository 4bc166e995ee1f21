"""Assignment of uploads to bistros, and the problem of collecting them: rules and tables."""
