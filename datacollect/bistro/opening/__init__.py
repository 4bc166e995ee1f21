"""Opening what was collected, in processes of their own."""
