"""Other servers: any web server that knows ranges, as it is."""
