"""Measurements: from samples of bandwidth to one estimate per link."""
