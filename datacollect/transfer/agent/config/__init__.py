"""What an agent's file says, and setting one up."""
