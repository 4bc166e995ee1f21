"""Data that wait: pieces sealed at their source, kept at a relay, opened at the destination."""
