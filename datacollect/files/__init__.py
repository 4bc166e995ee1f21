"""Formats of files that people write and read: units, instants, names, tables, documents."""
