"""Arithmetic that knows no problem: arrays, ranges of bytes, intervals, fair shares, pace."""
