"""The processes of a log service: HTTP front ends, and one log owner behind them."""
