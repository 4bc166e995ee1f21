"""``datacollect plot``."""

from __future__ import annotations


def test_plot_writes_a_picture(planned, call):
    code, out, err = call("plot", "figure1.toml", "plan.json", "-o", "plan.png")
    assert (code, out, err) == (0, "", "saved to plan.png\n")
    assert (planned / "plan.png").read_bytes().startswith(b"\x89PNG")
