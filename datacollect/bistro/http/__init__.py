"""HTTP for strangers: connections within limits, clocks, signals, files of servers."""
