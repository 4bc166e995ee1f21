"""Pictures of schedules and of pulls, as files and as pages: who sends what to whom, when."""
