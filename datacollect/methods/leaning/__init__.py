"""What plans lean on: what hosts are to do at once that was not shown of them."""
