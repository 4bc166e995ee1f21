"""The engine at max-min fair rates."""
