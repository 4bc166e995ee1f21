"""What a bistro decides about sealed uploads: who may push, where bytes lie, what may go."""
