"""What a schedule is made of, and what follows from that alone: transfers, use, whose it is."""
