"""Explanations of plans: why one takes as long as it does, and what to relax first."""
