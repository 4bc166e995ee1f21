"""Experiments: what their files say, sweeps over seeds and axes, the runs they leave."""
