"""The picture of a schedule: what it shows, and that it can be read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import plotted
from instances.plotted import schedule_of, star
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from datacollect.errors import ProblemError
from datacollect.pictures.colours import PALETTE
from datacollect.pictures.picture import MAX_BANDS, MAX_INSTANTS, mean_rates, picture_of
from datacollect.pictures.plot import plot_schedule, save_plot
from datacollect.pictures.words import ORDER
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem
from datacollect.schedule.data.transfers import Bottleneck
from datacollect.schedule.schedule import Schedule


@pytest.fixture
def relayed() -> tuple[Problem, Schedule]:
    return plotted.relayed()


# What is shown


def test_bands_go_from_sources_over_relays_to_the_destination(relayed):
    picture = picture_of(*relayed)
    assert [band.name for band in picture.bands] == ["S1", "S2", "K", "D"]
    assert picture.n_hosts == 4
    assert picture.sources == ("S1", "S2")


def test_areas_tell_source_and_peer_and_rate(relayed):
    """Rates as in the fixture, over the stretches 0-10 s and 10-20 s."""
    picture = picture_of(*relayed)
    assert picture.edges_s.tolist() == [0, 10, 20]
    assert picture.mean_over_s is None

    def safe_text(areas):
        return [(picture.sources[a.series], a.peer, a.bytes_per_s.tolist()) for a in areas]

    s1, s2, k, d = picture.bands
    assert safe_text(s1.sends) == [("S1", "D", [100, 0])]
    assert safe_text(s2.sends) == [("S2", "D", [50, 50]), ("S2", "K", [100, 0])]
    assert safe_text(k.receives) == [("S2", "S2", [100, 0])]
    assert safe_text(k.sends) == [("S2", "D", [0, 100])]
    assert safe_text(d.receives) == [
        ("S1", "S1", [100, 0]),
        ("S2", "K", [0, 100]),
        ("S2", "S2", [50, 50]),
    ]
    assert s1.receives == s2.receives == d.sends == ()


def test_stored_data_rise_and_fall(relayed):
    """1000 bytes come in 10 s and go in the next 10 s."""
    k = picture_of(*relayed).bands[2]
    assert k.stored_s.tolist() == [0, 10, 20]
    assert k.stored_bytes.tolist() == [0, 1000, 0]
    assert k.shows_storage


def test_chunks_of_a_pipeline_are_no_curve(relayed):
    """K passes 1000 bytes on, a chunk of 10 bytes behind: 1 % of them are there at a time."""
    problem, schedule = relayed
    rows = [(0, 0, 0, 1000, 0, 20), (1, 0, 0, 1000, 0, 20)]
    rows += [(2, 0, 1000, 1000, 0, 20), (2, 1, 1000, 1000, 0.2, 20.2)]
    pipelined = schedule_of(problem, [r.hosts for r in schedule.routes], rows, chunk_s=0.2)
    k = picture_of(problem, pipelined).bands[2]
    assert k.stored_bytes.max() == pytest.approx(10)
    assert not k.shows_storage
    assert picture_of(problem, pipelined.replace(slot_s=0.2)).bands[2].shows_storage


@pytest.mark.parametrize("n", [4, 40])
def test_areas_hold_all_bytes(n):
    """What each shown host sends and receives over time are its transfers' bytes.

    n sources of 1, 2 ... n kB, of which s1 sends s0's besides its own: 3 kB.
    """
    problem, schedule = star(n)
    picture = picture_of(problem, schedule)
    lengths_s = np.diff(picture.edges_s)
    moved = {
        band.name: [
            sum(float(area.bytes_per_s @ lengths_s) for area in areas)
            for areas in (band.sends, band.receives)
        ]
        for band in picture.bands
    }
    assert moved["D"] == [0, pytest.approx(1000 * n * (n + 1) / 2)]
    sent = {f"s{i}": 1000 * (i + 1) for i in range(n)} | {"s1": 3000}
    for name in moved.keys() - {"D"}:
        assert moved[name] == [pytest.approx(sent[name]), 1000 if name == "s1" else 0]


def test_of_many_hosts_the_busiest_are_shown():
    """Of 40 sources those with the most bytes, and the destination; others' data are one area."""
    picture = picture_of(*star(40))
    assert len(picture.bands) == MAX_BANDS
    assert [band.name for band in picture.bands] == [f"s{i}" for i in range(16, 40)] + ["D"]
    assert picture.n_hosts == 41
    assert picture.sources[-1] == "16 other sources"
    assert picture.n_sources == 40
    assert len(picture.bands[-1].receives) == 25


def test_many_instants_are_averaged():
    """3000 transfers, one after another with pauses as long, carry all their bytes."""
    problem = Problem.from_hosts([Host("S", 3000), Host("D")], [Link("S", "D", 10)], "D")
    rows = [(0, 0, i, 1, 0.2 * i, 0.2 * i + 0.1) for i in range(3000)]
    picture = picture_of(problem, schedule_of(problem, [("S", "D")], rows))
    assert len(picture.edges_s) == MAX_INSTANTS
    assert picture.mean_over_s == pytest.approx(599.9 / (MAX_INSTANTS - 1))
    rate = picture.bands[0].sends[0].bytes_per_s
    assert rate @ np.diff(picture.edges_s) == pytest.approx(3000)
    assert rate.max() < 10


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(1, 10**15), st.floats(0, 0.9), st.floats(1e-3, 0.1)
        ),
        max_size=12,
    ),
    st.lists(st.floats(0.001, 0.999), max_size=12, unique=True),
)
def test_mean_rates_equal_the_overlaps_summed(transfers, inner):
    """The oracle adds up each transfer's share of each stretch."""
    edges = np.array([0.0, *sorted(inner), 1.0])
    row, n_bytes, start, length = (
        np.array([t[i] for t in transfers], dtype=float) for i in range(4)
    )
    finish = start + length
    got = mean_rates(n_bytes, start, finish, row.astype(int), 3, edges)
    expected = np.zeros((3, len(edges) - 1))
    for r, amount, s, f in zip(row.astype(int), n_bytes, start, finish, strict=True):
        overlap = np.minimum(f, edges[1:]) - np.maximum(s, edges[:-1])
        expected[r] += amount / (f - s) * np.maximum(overlap, 0) / np.diff(edges)
    assert got.shape == expected.shape
    scale = expected.max(initial=1.0)
    assert got == pytest.approx(expected, rel=1e-6, abs=1e-8 * scale)


# The figure


def texts_of(figure) -> list[str]:
    return [t.get_text().lstrip("\u200b") for t in figure.findobj(Text) if t.get_text()]


def patches_of(figure) -> dict:
    return {p.get_gid(): p for p in figure.axes[0].patches if p.get_gid()}


def area_of(patch) -> float:
    values, edges, baseline = patch.get_data()
    return float(np.abs(values - baseline) @ np.diff(edges))


def test_areas_are_proportional_to_bytes_on_one_scale(relayed):
    """S1 sends 1000 bytes; each other pair of hosts moves as many."""
    figure = plot_schedule(*relayed)
    areas = {gid: area_of(patch) for gid, patch in patches_of(figure).items()}
    assert set(areas) == {
        "S1 sends S1 D",
        "S2 sends S2 D",
        "S2 sends S2 K",
        "K receives S2 S2",
        "K sends S2 D",
        "D receives S1 S1",
        "D receives S2 S2",
        "D receives S2 K",
    }
    assert list(areas.values()) == [pytest.approx(areas["S1 sends S1 D"])] * 8
    assert any("one scale for all hosts" in text for text in texts_of(figure))


def test_hosts_of_very_different_rates_have_their_own_scales():
    """Rates of 1 to 8 kB in 20 s differ by 8, too much for one scale: all are equally high."""
    figure = plot_schedule(*star(8))
    heights = {
        gid: np.abs(patch.get_data().values - patch.get_data().baseline).max()
        for gid, patch in patches_of(figure).items()
        if "sends" in gid
    }
    assert heights["s0 sends s0 s1"] == pytest.approx(heights["s7 sends s7 D"])
    assert any("each host on its own scale" in text for text in texts_of(figure))


def test_colours_tell_whose_data_wherever_they_are(relayed):
    patches = patches_of(plot_schedule(*relayed))
    colours = {gid: mpl.colors.to_hex(p.get_facecolor()).upper() for gid, p in patches.items()}
    for gid, colour in colours.items():
        assert colour == (PALETTE[0] if gid.split()[2] == "S1" else PALETTE[1])


@pytest.mark.slow
def test_the_ninth_source_is_hatched_in_the_picture_itself():
    """Its area has the first colour again, and ink; the first source's has no ink."""
    figure = plot_schedule(*star(9, size=10**9))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[::-1, :, :3].astype(int)
    found = {}
    for gid, patch in patches_of(figure).items():
        if gid in ("s0 sends s0 s1", "s8 sends s8 D"):
            box = patch.get_window_extent()
            area = pixels[int(box.y0) + 2 : int(box.y1) - 2, int(box.x0) + 200 : int(box.x1) - 200]
            colours = np.unique(area.reshape(-1, 3), axis=0)
            found[gid] = {mpl.colors.to_hex(colour / 255).upper() for colour in colours}
    assert PALETTE[0] in found["s0 sends s0 s1"]
    assert "#FFFFFF" not in found["s0 sends s0 s1"]
    assert {PALETTE[0], "#FFFFFF"} <= found["s8 sends s8 D"]


def test_lines_stand_at_the_lower_bound_and_the_makespan(relayed):
    lines = {line.get_gid(): line for line in plot_schedule(*relayed).axes[0].lines}
    assert lines["lower bound"].get_xdata() == [15, 15]
    assert lines["lower bound"].get_linestyle() == "--"
    assert lines["makespan"].get_xdata() == [20, 20]
    assert lines["makespan"].get_linestyle() == "-"
    assert lines["K stores"].get_xdata().tolist() == [0, 10, 20]


def test_words_say_what_how_and_how_good(relayed):
    """20 s are 33.3 % above 15 s; 150 bytes/s are 1.2 kbit/s."""
    texts = texts_of(plot_schedule(*relayed))
    for text in (
        "3 kB to D in 20 s",
        "Method: coordinated, in slots of 10 s; 33.3 % above the lower bound.",
        "S2 can send at most 1.2 kbit/s.",
        "lower bound 15 s",
        "makespan 20 s",
        "has 2 kB",
        "relays S2",
        "collects 3 kB",
        "S2 → D",
        "S2 via K",
        "stores ≤ 1 kB",
        "receives ≤ 1.2 kbit/s",
        "time (s)",
        ORDER,
    ):
        assert text in texts
    assert "idle" not in texts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound_s", "words"),
    [(20.0, "; equal to the"), (19.0, "; 5.3 % above the"), (8.0, "; 2.5 times"), (0.0, "; above")],
)
def test_words_compare_with_the_lower_bound(relayed, bound_s, words):
    problem, schedule = relayed
    figure = plot_schedule(problem, schedule.replace(lower_bound_s=bound_s))
    assert any(words in text for text in texts_of(figure))


@pytest.mark.slow
def test_of_many_hosts_the_picture_says_how_many_it_shows():
    texts = texts_of(plot_schedule(*star(40)))
    assert any("Shown: the 25 busiest of 41 hosts." in text for text in texts)
    assert "16 other sources" in texts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("duration_s", "unit"),
    [(0.02, "ms"), (4, "s"), (200, "s"), (4000, "min"), (1e5, "h"), (1e6, "days"), (1e15, "days")],
)
def test_time_has_a_fitting_unit(duration_s, unit):
    problem = Problem.from_hosts([Host("S", 10**6), Host("D")], [Link("S", "D", 1e9)], "D")
    schedule = schedule_of(problem, [("S", "D")], [(0, 0, 0, 10**6, 0, duration_s)])
    figure = plot_schedule(problem, schedule.replace(lower_bound_s=duration_s))
    assert f"time ({unit})" in texts_of(figure)


def odd_names() -> tuple[Problem, Schedule]:
    long = "a-very-long-name-of-a-host.of-a-department.of-a-university.example.org"
    end = "d" + long
    problem = Problem.from_hosts(
        [Host("_$1$", 1000, release_s=2.0), Host(long, 10**15), Host(end), Host("ζ_{2}")],
        [Link("_$1$", "ζ_{2}", 1), Link("ζ_{2}", end, 1), Link(long, end, 1)],
        end,
    )
    routes = [("_$1$", "ζ_{2}", end), (long, end)]
    rows = [(0, 0, 0, 1000, 2, 9), (0, 1, 0, 1000, 9, 10), (1, 0, 0, 10**15, 0, 20)]
    bottleneck = Bottleneck("hosts", (long,), f"Host {long!r} binds with all of its links. " * 4)
    return problem, schedule_of(problem, routes, rows, bottleneck=bottleneck)


def test_names_are_written_as_they_are():
    """Dollars are no formulas, and a leading underscore hides nothing."""
    texts = texts_of(plot_schedule(*odd_names()))
    assert texts.count("_$1$") >= 2  # beside its band and in the legend
    assert "has 1 kB from 2 s on" in texts


@pytest.mark.slow
@pytest.mark.parametrize("case", ["relayed", "odd", 2, 9, 11, 40])
def test_nothing_is_cut_off_and_no_texts_overlap(case, relayed):
    plan = {"relayed": relayed, "odd": odd_names()}.get(case) or star(case, size=10**9)
    figure = plot_schedule(*plan)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    boxes = {
        (i, text.get_text()): text.get_window_extent(renderer)
        for i, text in enumerate(figure.findobj(Text))
        if text.get_visible() and text.get_text().strip()
    }
    assert len(boxes) > 8
    page = figure.bbox
    assert page.width == 1200
    for name, box in boxes.items():
        assert page.x0 <= box.x0, name
        assert box.x1 <= page.x1, name
        assert page.y0 <= box.y0, name
        assert box.y1 <= page.y1, name
    for (one, a), (two, b) in combinations(boxes.items(), 2):
        apart = max(a.x0 - b.x1, b.x0 - a.x1, a.y0 - b.y1, b.y0 - a.y1)
        # Lines of one text lie as near as this to each other too.
        assert apart > -2.5, (one, two)


def test_nothing_to_move_is_a_picture_too(tmp_path):
    problem = Problem.from_hosts([Host("S"), Host("D")], [Link("S", "D", 1)], "D")
    schedule = schedule_of(problem, [], [], lower_bound_s=0.0)
    assert texts_of(plot_schedule(problem, schedule))[0] == "Nothing to move to D"
    save_plot(problem, schedule, tmp_path / "empty.png")


# Files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")]
)
def test_files_are_of_the_kind_that_their_suffix_says(relayed, tmp_path, name, start):
    save_plot(*relayed, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["plan.jpg", "plan", "png"])
def test_other_suffixes_are_refused(relayed, tmp_path, name):
    with pytest.raises(ProblemError, match=r"name must end in \.png, \.svg, \.pdf, \.html, got"):
        save_plot(*relayed, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_named(relayed, tmp_path):
    with pytest.raises(ProblemError, match=r"a\.png: cannot be written: No such file"):
        save_plot(*relayed, tmp_path / "no-such-folder" / "a.png")


def test_drawing_leaves_matplotlibs_global_state_alone(relayed):
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams), plt.get_fignums()
    plot_schedule(*relayed)
    assert (dict(mpl.rcParams), plt.get_fignums()) == before


@pytest.mark.slow
def test_threads_draw_at_the_same_time(tmp_path):
    """Three pictures drawn at once are those drawn one after another."""
    plans = [star(n) for n in (2, 3, 4)]

    def draw(folder, i):
        folder.mkdir(exist_ok=True)
        save_plot(*plans[i], folder / f"{i}.png")
        return (folder / f"{i}.png").read_bytes()

    alone = [draw(tmp_path / "alone", i) for i in range(3)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda i: draw(tmp_path / "together", i), range(3)))
    assert together == alone
