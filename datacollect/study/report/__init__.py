"""What sweeps have found: tables, intervals, figures, verdicts, a page."""
