"""What methods are asked for: their names, arguments and options."""
