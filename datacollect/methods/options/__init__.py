"""Specifications of methods: their names, arguments and options."""
