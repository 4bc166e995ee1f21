"""Reports of sweeps: tables, intervals, figures, verdicts, a page."""
