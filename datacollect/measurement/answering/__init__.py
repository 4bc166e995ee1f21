"""An agent's part in measuring: its host's lease, what tests may take, the tests themselves."""
