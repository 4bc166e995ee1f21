"""What a person keeps: the receipt, the time that it proves, and who has lied by it."""
