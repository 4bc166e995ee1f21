"""What people write and read: units, quantities, instants, names, tables, documents."""
