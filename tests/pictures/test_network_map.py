"""Maps: an arrow for each hop of each route, or for each link, as wide as its rate."""

from __future__ import annotations

import io
from itertools import combinations

import pytest
from hypothesis import given
from instances.strategies import problems
from matplotlib.colors import to_rgba
from matplotlib.patches import FancyArrow

import datacollect as dc
from datacollect.examples import example_files
from datacollect.pictures.colours import OTHERS
from datacollect.pictures.network_map import THINNEST, WIDEST, plot_map, save_map

MB = 1_000_000


def example(folder, name):
    for file, text in example_files(name).items():
        (folder / file).write_text(text)
    return dc.Problem.from_file(folder / f"{name}.toml")


@pytest.fixture(scope="module")
def cities(tmp_path_factory):
    return example(tmp_path_factory.mktemp("cities"), "cities")


def arrows(figure):
    """Return the width of each arrow by its hosts and route."""
    found = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrow)]
    return {
        tuple(map(int, patch.get_gid().split()[1:])): (patch._width, patch.get_facecolor())
        for patch in found
    }


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts] + [
        text.get_text() for text in figure.texts
    ]


def test_two_routes_have_two_colours_and_widths_by_rate(cities):
    """40 Mbit/s directly, 150 over Paris: 40/150 of the width, and one width on both hops."""
    figure = plot_map(cities, dc.coordinated(cities))
    index = cities.host_index
    widths = {key[:2]: each for key, each in arrows(figure).items()}
    direct = widths[index["barcelona"], index["geneva"]]
    there = widths[index["barcelona"], index["paris"]]
    on = widths[index["paris"], index["geneva"]]
    assert len(widths) == 3
    assert there[0] == pytest.approx(WIDEST)
    assert on[0] == pytest.approx(WIDEST, rel=2e-3)
    assert direct[0] == pytest.approx(WIDEST * 40 / 150, rel=2e-3)
    assert there[1] == on[1] != direct[1]


def test_words_say_what_moves_and_how_to_read_it(cities):
    said = texts(plot_map(cities, dc.coordinated(cities)))
    assert "20 GB to geneva in 14 min 03 s, by coordinated" in said
    assert "barcelona → paris → geneva: 15.79 GB" in said
    assert "Each arrow is as wide as its rate." in said
    assert "40 Mbit/s" in said
    assert "barcelona\n20 GB" in said


def test_without_a_schedule_links_are_drawn_by_bandwidth(cities):
    figure = plot_map(cities)
    assert sorted(width for width, _ in arrows(figure).values()) == pytest.approx(
        [WIDEST * 40 / 200, WIDEST * 150 / 200, WIDEST]
    )
    assert "20 GB for geneva: links by bandwidth" in texts(figure)


def test_hosts_stand_where_they_say_north_up_and_east_right(cities):
    at = {
        text.get_text().partition("\n")[0]: text.get_position()
        for text in plot_map(cities).axes[0].texts
    }
    # The axis counts inches from the top.
    assert at["paris"][1] < at["geneva"][1] < at["barcelona"][1]
    assert at["geneva"][0] > at["barcelona"][0]


def test_of_many_routes_those_over_the_same_relays_have_one_colour():
    """Nine sources send directly, and each over a relay of its own: what is ninth is grey."""
    relays = [f"K{i}" for i in range(9)]
    names = [*(f"S{i}" for i in range(9)), *relays, "D"]
    hosts = [dc.Host(name, (9 + i) * MB if name[0] == "S" else 0) for i, name in enumerate(names)]
    links = [dc.Link(f"S{i}", "D", 1e6) for i in range(9)]
    links += [dc.Link(f"S{i}", f"K{i}", 1e6) for i in range(9)]
    links += [dc.Link(f"K{i}", "D", 1e6) for i in range(9)]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    figure = plot_map(problem, dc.coordinated(problem))
    found = arrows(figure)
    colours = {colour for key, (_, colour) in found.items() if names[key[0]][0] == "S"}
    assert len(colours) == 9
    assert to_rgba(OTHERS) in colours
    direct = {c for k, (_, c) in found.items() if names[k[0]][0] == "S" and names[k[1]] == "D"}
    assert len(direct) == 1
    said = texts(figure)
    assert any(text.startswith("directly: ") for text in said)
    assert any(text.startswith("over K8: ") for text in said)
    assert any(text.startswith("over 2 other ways: ") for text in said)


def test_names_of_many_hosts_lie_on_no_other_name_nor_host(tmp_path):
    problem = example(tmp_path, "sites")
    for plan in (None, dc.coordinated(problem)):
        figure = plot_map(problem, plan)
        figure.canvas.draw()
        boxes = [
            text.get_window_extent()
            for text in figure.axes[0].texts
            if "bit/s" not in text.get_text()
        ]
        assert len(boxes) == 15
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        said = texts(figure)
        assert not any("other" in text for text in said)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fewest"), [("cities", 3), ("alps", 4)])
def test_rates_lie_on_no_arrow_and_not_on_each_other(tmp_path, name, fewest):
    problem = example(tmp_path, name)
    figure = plot_map(problem, dc.coordinated(problem))
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if "bit/s" in str(text)]
    assert len(boxes) >= fewest
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    bodies = [
        patch.get_transform().transform_path(patch.get_path()) for patch in figure.axes[0].patches
    ]
    assert not any(body.intersects_bbox(box) for body in bodies for box in boxes)


def test_a_thin_arrow_is_still_seen():
    names, rates = ["S", "T", "D"], [[0, 0, 1e9], [0, 0, 1.0], [0, 0, 0]]
    problem = dc.Problem.from_matrix(names, rates, [MB, 1, 0], "D")
    assert min(width for width, _ in arrows(plot_map(problem)).values()) == THINNEST


def test_names_of_others_are_written_as_they_are():
    names = ["$x^2$", "a — b", "_D"]
    rates = [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]]
    problem = dc.Problem.from_matrix(names, rates, [MB, 0, 0], "_D")
    figure = plot_map(problem, dc.coordinated(problem))
    figure.savefig(io.BytesIO(), format="png")
    said = texts(figure)
    assert any("$x^2$" in text for text in said)
    assert any("a — b" in text for text in said)
    assert not any(text.get_parse_math() for text in figure.axes[0].texts)


def test_a_schedule_of_other_hosts_is_refused(cities):
    other = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    with pytest.raises(
        dc.ProblemError, match="names the host 'S', which the problem does not have"
    ):
        plot_map(cities, dc.direct(other))


def test_files_are_the_same_each_time_and_of_known_kinds(cities, tmp_path):
    plan = dc.coordinated(cities)
    for name in ("a.png", "b.png", "c.svg", "d.pdf"):
        save_map(cities, plan, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "c.svg").read_bytes().startswith(b"<?xml")
    with pytest.raises(dc.ProblemError, match=r"must end in .png, .svg, .pdf, got '.gif'"):
        save_map(cities, plan, tmp_path / "e.gif")


@given(problems())
def test_every_problem_and_plan_can_be_drawn(problem):
    plot_map(problem)
    try:
        plan = dc.coordinated(problem)
    except dc.InfeasibleError:
        return
    found = arrows(plot_map(problem, plan))
    assert all(THINNEST <= width <= WIDEST * (1 + 1e-9) for width, _ in found.values())
