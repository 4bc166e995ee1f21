"""Receipts of a person: the file, the time that it proves, and evidence of misbehaviour."""
