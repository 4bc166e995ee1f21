"""Controllers that carry out a schedule: at its times, in its order, or replanning."""
