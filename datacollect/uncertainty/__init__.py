"""Uncertainty of plans: what they take where bandwidths are as measurements have found them."""
