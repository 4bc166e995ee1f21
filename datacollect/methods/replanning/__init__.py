"""Planning what remains of a collection, near the plan before."""
