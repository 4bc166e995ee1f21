"""The shell of a bistro: uploads over an agent's sessions, one thread that has them on the disk."""
