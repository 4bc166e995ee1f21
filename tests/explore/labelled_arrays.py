"""Arrays in every container: labels in any order, units, durations; no numbers are refused."""

from __future__ import annotations

import random
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from datacollect import Problem, perturb
from datacollect.errors import ProblemError

NAMES = ("S", "K", "D", "Zürich", "a b", "0", "1", "None", "10.0.0.1", "d")


def case(seed: int) -> str | None:
    """Give numbers of hosts, of pairs or of links in some container, right or with one slip."""
    rng = random.Random(f"labelled arrays {seed}")
    names = rng.sample(NAMES, rng.randint(2, 6))
    names[rng.randrange(len(names))] = "D"
    names = list(dict.fromkeys(names))
    if len(names) < 2:
        names = ["S", "D"]
    rates = [[float(rng.randint(1, 9)) if a != b else 0.0 for b in names] for a in names]
    plain = Problem.from_matrix(names, rates, [0] * len(names), "D")
    ask = rng.choice([_of_hosts, _of_pairs, _of_links, _of_names])
    return ask(rng, plain, names, rates)


def _of_hosts(rng: random.Random, plain: Problem, names: list[str], rates: Any) -> str | None:
    key = rng.choice(["backlog_bytes", "release_s", "storage_bytes", "uplink_bytes_per_s"])
    numbers = [rng.randint(0, 10**6) for _ in names]
    given, wrong = _labelled(rng, names, numbers, is_time=key == "release_s")

    def ask() -> list[float]:
        if rng.random() < 0.5:
            found = plain.replace(**{key: given})
        else:
            every = {"backlog_bytes": numbers} | {key: given}
            found = Problem.from_matrix(names, rates, destination="D", **every)
        return getattr(found, key).reshape(-1, len(names))[0].tolist()

    return _compared(ask, numbers, given, wrong)


def _of_pairs(rng: random.Random, plain: Problem, names: list[str], rates: Any) -> str | None:
    frame = pd.DataFrame(rates, names, names)
    rows, columns = (rng.sample(names, len(names)) for _ in range(2))
    mixed = frame.loc[rows, columns]
    dressed: list[Any] = [
        mixed,
        mixed.astype(object),
        mixed.astype(pd.SparseDtype(float, 0.0)),
        mixed.astype("float32"),
        {a: dict(mixed.loc[a]) for a in rows},
        {a: mixed.loc[a] for a in rows},
        pd.DataFrame(rates),
        np.array(rates),
        np.asfortranarray(rates),
        sparse.csr_matrix(np.array(rates)),
        pa.table({name: frame[name].to_numpy() for name in names}),
        mixed.map(lambda rate: f"{rate:.0f} B/s"),
    ]
    given, wrong = rng.choice(dressed), False
    if rng.random() < 0.3:
        wrong = True
        given = rng.choice(
            [
                mixed.rename(columns={columns[0]: "nobody"}),
                mixed.iloc[1:],
                mixed.astype(complex),
                mixed > 0,
                np.ma.array(rates, mask=np.array(rates) == np.max(rates)),
                pd.concat([mixed, mixed.iloc[:, :1]], axis=1),
                pd.DataFrame(rates, range(1, len(names) + 1), names),
                np.array(rates, int).astype("timedelta64[s]"),
            ]
        )
    return _compared(
        lambda: Problem.from_matrix(names, given, [0] * len(names), "D").to_dict(),
        plain.to_dict(),
        given,
        wrong,
    )


def _of_links(rng: random.Random, plain: Problem, names: list[str], _rates: Any) -> str | None:
    ends = zip(plain.link_from.tolist(), plain.link_to.tolist(), strict=True)
    pairs = [(names[a], names[b]) for a, b in ends]
    order = rng.sample(range(len(pairs)), len(pairs))
    factors = [float(rng.randint(1, 9)) for _ in pairs]
    index = pd.MultiIndex.from_tuples([pairs[i] for i in order])
    given = pd.Series([factors[i] for i in order], index)
    wrong = rng.random() < 0.3
    if wrong:
        given = rng.choice([given.iloc[1:], given.swaplevel(), given > 0, given + 0j])
        # All that a swap changes may be nothing.
        wrong = list(given.index) != list(index) or given.dtype.kind in "bc"
        if set(given.index) == set(pairs) and given.dtype.kind == "f":
            factors = [float(given[pair]) for pair in pairs]
            wrong = False
    before = plain.bandwidth_bytes_per_s[0].tolist()
    expected = [x * f for x, f in zip(before, factors, strict=True)]

    def ask() -> list[float]:
        if rng.random() < 0.5:
            return perturb(plain, given).bandwidth_bytes_per_s[0].tolist()
        rates = plain.replace(price_per_gb=given).price_per_gb
        return [x * f for x, f in zip(before, rates, strict=True)]

    return _compared(ask, expected, given, wrong)


def _of_names(rng: random.Random, plain: Problem, names: list[str], rates: Any) -> str | None:
    n = len(names)
    dressed: list[Any] = [
        np.array(names),
        np.array(names, dtype=object),
        np.array(names, dtype=np.dtypes.StringDType()),
        pd.Series(names, rng.sample(range(100), n)),
        pd.Series(names, dtype=rng.choice(["category", "string", object])),
        pd.Index(names),
        pd.CategoricalIndex(names),
        pa.array(names),
        pa.array(names).dictionary_encode(),
        pa.chunked_array([names[:1], names[1:]]),
        iter(names),
    ]
    given, wrong = rng.choice(dressed), rng.random() < 0.2
    if wrong:
        given = rng.choice([set(names), names[0], 7, [*names[:-1], 7], [*names, names[0]], None])
    return _compared(
        lambda: Problem.from_matrix(given, rates, [0] * n, "D").to_dict(),
        plain.to_dict(),
        given,
        wrong,
    )


def _labelled(
    rng: random.Random, names: list[str], numbers: list[int], *, is_time: bool
) -> tuple[Any, bool]:
    """Return numbers of hosts in some container, and whether something is wrong with it."""
    order = rng.sample(range(len(names)), len(names))
    labels, mixed = [names[i] for i in order], [numbers[i] for i in order]
    dressed: list[Any] = [
        numbers,
        tuple(numbers),
        np.array(numbers, dtype=rng.choice([np.int32, np.float64, object, np.longdouble])),
        pd.Series(numbers),
        pd.Series(mixed, labels),
        pd.Series(mixed, labels, dtype=rng.choice(["Int64", "Float64", object, "category"])),
        pd.Series(mixed, labels, dtype=pd.ArrowDtype(pa.int64())),
        pd.Series(mixed, pd.CategoricalIndex(labels)),
        dict(zip(labels, mixed, strict=True)),
        dict(zip(labels, map(np.int64, mixed), strict=True)),
        pa.array(numbers),
        pa.array(numbers).dictionary_encode(),
        [Decimal(x) for x in numbers],
        np.ma.array(numbers),
    ]
    if is_time:
        times = [timedelta(seconds=x) for x in mixed]
        dressed += [
            pd.Series(times, labels),
            pd.Series(mixed, labels).astype("timedelta64[s]"),
            np.array(numbers, "timedelta64[s]").astype("timedelta64[us]"),
            pa.array([x * 1000 for x in numbers], pa.duration("ms")),
            dict(zip(labels, [f"{x} s" for x in mixed], strict=True)),
        ]
    if rng.random() < 0.7:
        return rng.choice(dressed), False
    some = rng.randrange(len(names))
    slips: list[Any] = [
        pd.Series(numbers, range(1, len(names) + 1)),
        pd.Series(mixed, ["nobody", *labels[1:]]),
        pd.Series([*mixed, 1], [*labels, labels[some]]),
        dict(list(zip(labels, mixed, strict=True))[1:]),
        np.ma.array(numbers, mask=[i == some for i in range(len(names))]),
        [*numbers[:some], True, *numbers[some + 1 :]],
        [*numbers[:some], 1j, *numbers[some + 1 :]],
        np.array(numbers).astype(bool),
        pd.Series(mixed, labels).astype(complex),
        pd.Series(pd.Timestamp("2024-01-01"), labels),
        set(numbers) | {-1},
        pa.array([x > 3 for x in numbers]),
    ]
    if not is_time:
        slips.append(np.array(numbers, "timedelta64[s]"))
    return rng.choice(slips), True


def _compared(ask: Any, expected: Any, given: Any, wrong: bool) -> str | None:
    try:
        found = ask()
    except ProblemError as error:
        if not wrong:
            return f"refused: {error}; given {given!r}"
        return (
            None
            if ", got " in str(error) or "given twice" in str(error) or "add it" in str(error)
            else f"refused in other words: {error}"
        )
    if wrong:
        return f"taken: {given!r} as {found}"
    return None if found == expected else f"{found} where {expected} was given as {given!r}"
