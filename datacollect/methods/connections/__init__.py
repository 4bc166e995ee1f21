"""Plans with whole numbers of connections."""
