"""An agent's part in measuring: the lease of its host, what tests may take, and tests themselves."""
