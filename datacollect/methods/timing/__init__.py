"""From fluid paths to transfers at instants: pipelines, slots, and what hops use."""
