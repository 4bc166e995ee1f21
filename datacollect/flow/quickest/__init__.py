"""The quickest flow by minimum cuts: what binds, what more would save, the cheapest of them."""
