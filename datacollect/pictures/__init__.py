"""Pictures of schedules, as files and as pages: who sends what to whom, when."""
