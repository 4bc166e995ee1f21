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


def test_a_map_of_a_plan_and_of_a_problem(planned, call):
    for name, files in (("m.png", ["plan.json"]), ("n.png", [])):
        code, out, err = call("plot", "figure1.toml", *files, "--map", "-o", name)
        assert (code, out, err) == (0, "", f"saved to {name}\n")
        assert (planned / name).read_bytes().startswith(b"\x89PNG")
    code, out, _ = call("plot", "figure1.toml", "--map", "-o", "o.svg", "--json")
    assert (code, out) == (0, '{\n  "picture": "o.svg",\n  "makespan_s": null\n}\n')


def test_a_picture_needs_a_schedule_and_a_page_has_a_map_of_its_own(planned, call):
    code, _, err = call("plot", "figure1.toml", "-o", "m.png")
    assert code == 2
    assert "name a SCHEDULE, or draw the problem's links with --map" in err
    code, _, err = call("plot", "figure1.toml", "plan.json", "--map", "-o", "m.html")
    assert code == 2
    assert "the page has a map of its own" in err
    code, _, err = call("plot", "figure1.toml", "--map", "-o", "figure1.toml", "--force")
    assert code == 2
    assert "would overwrite the input" in err
