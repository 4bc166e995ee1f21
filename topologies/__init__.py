"""Topologies: generators and small networks of our own."""
