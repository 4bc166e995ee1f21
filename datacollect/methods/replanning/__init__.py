"""Planning the rest of a collection anew, near the plan before."""
