"""The agent in measuring: takes part in tests that operators ask for, within its limits."""
