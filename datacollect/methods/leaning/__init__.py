"""Assumptions of plans: what hosts are to do at once that was not shown of them."""
