"""The destination's register of uploads: in SQLite, or in PostgreSQL for several machines."""
