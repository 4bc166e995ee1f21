"""Solver backends, one file each; load them with `datacollect.flow.load_flow_solver`.

They know nodes, arcs, rows and columns, nothing of hosts or time, and import only
`datacollect.flow` and `datacollect.errors`. A new backend is one class with the methods of
`datacollect.flow.FlowSolver` (or `LinearSolver`) and one line in the tables of `datacollect.flow`;
the tests in ``tests/solvers`` then run on it as on all others.
"""
