"""From samples of measured bandwidth to one estimate per link."""
