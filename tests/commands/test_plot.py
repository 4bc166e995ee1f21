"""``datacollect plot``."""

from __future__ import annotations


def test_plot_writes_a_picture(planned, call):
    code, out, err = call("plot", "figure1.toml", "plan.json", "-o", "plan.png")
    assert (code, out, err) == (0, "", "saved to plan.png\n")
    assert (planned / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_plot_writes_a_page_with_and_without_its_option(planned, call):
    for name, option in (("plan.html", ["--html"]), ("other.html", [])):
        code, out, err = call("plot", "figure1.toml", "plan.json", *option, "-o", name)
        assert (code, out, err) == (0, "", f"saved to {name}\n")
        page = (planned / name).read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert "Who sends what to whom" in page


def test_a_page_under_another_name_is_refused(planned, call):
    code, out, err = call("plot", "figure1.toml", "plan.json", "--html", "-o", "plan.png")
    assert (code, out) == (2, "")
    assert "-o must name a file that ends in .html with --html, got 'plan.png'" in err
    assert not (planned / "plan.png").exists()
