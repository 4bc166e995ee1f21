"""The page on which people hand in, in a browser: static files that an organiser serves."""
