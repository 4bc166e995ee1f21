"""Controllers of methods: functions that make them of a problem, a schedule and options."""
