"""Solvers: what they see, which one is chosen, and one file for each.

- `networks`, `programs`: flow networks and linear programs as plain data, and the protocols
  `FlowSolver` and `LinearSolver`.
- `registry`: names of solvers, and where each lives; `choice`: loads a solver by its name, or the
  fastest that is installed; `budget`: which one a planning call uses, and until when.
- `ortools`, `lemon`, `networkx`, `pulp` solve networks, `glop` and `pulp` linear programs. `auto`
  puts two of them together; `limited` and `served` run one in a child process that can be stopped.
- `checks`: what every flow solver looks at before it starts; `cbc`: how CBC is called.

Nothing here knows hosts or time: that makes solvers interchangeable.
"""
