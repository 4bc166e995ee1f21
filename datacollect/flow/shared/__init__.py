"""The fluid optimum where links share bottlenecks: linear programs with priced arcs."""
