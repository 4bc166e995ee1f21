"""Estimates of bandwidths from samples.

`datacollect.measurement.samples` says what a table of samples is.
"""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from datacollect.errors import DatacollectWarning, ProblemError, nearest_hint
from datacollect.files.choices import Estimator
from datacollect.files.kinds import Number, Whole
from datacollect.files.one_number import SINCE_1970
from datacollect.files.with_units import DURATION, PART, RANGE, in_units, in_whole
from datacollect.measurement.sample_rules import ruled
from datacollect.measurement.unlike import kinds_in_words, of_one_kind
from datacollect.numbers.containers import frame_of, texts_of
from datacollect.problem.fields import COUNTED
from datacollect.problem.numbers import numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from datacollect.files.quantities import Seconds
    from datacollect.numbers.arrays import FloatArray, IntArray

# Scenarios know those that look at no age: probes of a simulation are taken within minutes.
ESTIMATORS: tuple[str, ...] = get_args(Estimator)
AGELESS_ESTIMATORS = tuple(name for name in ESTIMATORS if name != "recent")

DAY_S = 86_400.0

# An instant on any clock: it may lie before 0.
_ANY_INSTANT = Number("seconds", signed=True)
# What columns of samples count, where cells may be texts with units.
_COUNTED: dict[str, Number | Whole] = {
    "bandwidth_bytes_per_s": COUNTED["bandwidth_bytes_per_s"],
    "time_s": _ANY_INSTANT,
    "bytes": RANGE,
    "duration_s": DURATION,
}

# A power of 2 beyond all numbers of samples.
_SCALE = 64


def estimate(
    samples: pd.DataFrame,
    how: Estimator | None = None,
    *,
    half_life_s: Seconds = DAY_S,
    a: float | None = None,
    quantile: float = 0.25,
    streams: int | None = None,
    now_s: Seconds | None = None,
    daily: Sequence[str] | None = None,
    timezone: str | None = None,
) -> pd.DataFrame:
    """Estimate the bandwidth of each pair of hosts from its samples.

    Parameters
    ----------
    samples : DataFrame
        From `read_samples`, `samples_from_iperf3`, or made by hand; bandwidths, bytes and times may
        be texts with units then.
    how : {"recent", "ewma", "mean", "last", "median", "quantile"}, optional
        ``"recent"``, the default: the mean in which samples weigh half as much for each
        `half_life_s` by which they are older than the pair's newest: Σ wᵢ·yᵢ / Σ wᵢ with
        wᵢ = 2^(−age/half-life). Dividing by all weights keeps the first sample from counting more
        than its age lets it. Samples equally old have their mean.
        ``"ewma"``, the default where `a` is given: the exponentially weighted moving average
        avg_i = (1 − a)·y_i + a·avg_{i−1} over a pair's samples in order of time, avg_1 = y_1
        (Cottrell, Antony, Logg and Navratil, iGrid2002 Demonstration: Bandwidth from the Low Lands,
        2003, section IV.C, with a = 0.9); after five more samples the first still has 59 % of all
        weight.
        ``"mean"``: all bytes of a pair's samples over all their seconds (columns bytes and
        duration_s), as one long transfer in parts would have it.
        ``"last"``: the newest sample. ``"median"``. ``"quantile"``: a low quantile, for plans that
        must not promise too much.
    half_life_s : float or str
        For ``"recent"``, > 0: seconds, or a text such as ``"6 h"``.
    a : float, optional
        Weight of the past in ``"ewma"``, 0 <= a < 1; by default 0.9.
    quantile : float
        For ``"quantile"``, between 0 and 1; linear between neighbouring samples.
    streams : int, optional
        Only tests with this number of connections count. Without it, where a pair was measured by
        several kinds of test, the kind counts by which most pairs were measured: tests of unlike
        protocols or numbers of connections, or of both directions at once, are never averaged.
    now_s : float or str, optional
        Instant from which ages count, on the samples' clock; by default the newest sample's.
    daily : sequence of str, optional
        Hours of the day at which periods start, ``["08:00", "20:00"]``: an estimate for each, of
        the samples that were taken then. A problem's ``daily_periods``.
    timezone : str, optional
        Where clocks show these hours, such as ``"Europe/Zurich"``; `daily` needs it.

    Returns
    -------
    DataFrame
        A row per pair, sorted by from and to: from, to, bandwidth_bytes_per_s, newest_s (time of
        the newest sample), age_s (time since then), n_samples, mean_bytes_per_s and
        last_bytes_per_s (the raw mean of the samples, and the newest), kind (of the tests, in
        words; empty where nothing is said of it); with `daily` a row per pair and period, and its
        number, period, from 0. `Problem.from_dataframe` takes it. Its ``attrs["notes"]`` says which
        tests were left out, which is also warned of.

    Raises
    ------
    ProblemError
        `how` is unknown, a number is out of range, or samples lack a column or are no samples.

    Warns
    -----
    DatacollectWarning
        Tests of other kinds were left out, or pairs were measured by unlike tests.

    Notes
    -----
    Estimates rot: of 3080 pairs of cloud regions that were measured in January and again in
    November 2022, 31 % had moved by more than 20 % (receivers' figures in the grids that the
    Skyplane project published; Jain et al., Skyplane, NSDI 2023, describe how). Look at
    ``age_s`` before you trust a plan.

    Examples
    --------
    >>> import pandas as pd
    >>> samples = pd.DataFrame(
    ...     {"from": "S", "to": "D", "time_s": [0, 86400], "bandwidth_bytes_per_s": [1e6, 2.5e6]}
    ... )
    >>> float(estimate(samples)["bandwidth_bytes_per_s"].iloc[0])  # weights 1/3 and 2/3
    2000000.0
    >>> float(estimate(samples, half_life_s="12 h")["bandwidth_bytes_per_s"].iloc[0])  # 1/5, 4/5
    2200000.0
    >>> float(estimate(samples, "quantile")["bandwidth_bytes_per_s"].iloc[0])
    1375000.0
    """
    import pandas as pd

    how = how or ("recent" if a is None else "ewma")
    a = in_units(0.9 if a is None else a, PART, "a")
    quantile, streams = in_units(quantile, PART, "quantile"), in_whole(streams, "streams")
    if how not in ESTIMATORS:
        raise ProblemError(
            f"how must be one of {', '.join(ESTIMATORS)}, got {how!r}"
            + nearest_hint(str(how), ESTIMATORS)
        )
    if (daily is None) != (timezone is None):
        raise ProblemError(
            "daily and timezone belong together: the time zone says whose hours of the day count; "
            "give both"
        )
    if not 0 <= a < 1:
        raise ProblemError(f"a must be >= 0 and < 1, got {a!r}; the usual value is 0.9")
    if not 0 <= quantile <= 1:
        raise ProblemError(f"quantile must be between 0 and 1, got {quantile!r}")
    half_life_s = in_units(half_life_s, DURATION, "half_life_s")
    now_s = in_units(now_s, _ANY_INSTANT, "now_s", (), SINCE_1970)
    if not (math.isfinite(half_life_s) and half_life_s > 0):
        raise ProblemError(f"half_life_s must be > 0 and finite, got {half_life_s!r}")
    samples, notes = _counting(samples, streams)
    y_bytes_per_s, time_s = _checked_samples(samples)
    host, names = pd.factorize(pd.concat([samples["from"], samples["to"]]), sort=True)
    key = host[: len(samples)] * len(names) + host[len(samples) :]
    pairs, pair = np.unique(key, return_inverse=True)
    order = np.lexsort((time_s, pair))
    first = np.flatnonzero(np.diff(pair[order], prepend=-1))
    n_samples = np.diff(first, append=len(order))
    y, t = y_bytes_per_s[order], time_s[order]
    last = first + n_samples - 1
    if how == "mean":
        bandwidth = _bytes_over_time(samples, order, first)
    elif how == "recent":
        bandwidth = _means_by_age(y, t, first, n_samples, half_life_s)
    elif how in ("median", "quantile"):
        part = 0.5 if how == "median" else quantile
        by_value = np.lexsort((y_bytes_per_s, pair))
        bandwidth = _quantiles(y_bytes_per_s[by_value], first, n_samples, part)
    else:
        bandwidth = _weighted_averages(y, first, n_samples, a if how == "ewma" else 0.0)
    newest_s = t[last]
    if now_s is None:
        now_s = float(newest_s.max(initial=0.0))
    elif len(newest_s) and not (math.isfinite(now_s) and now_s >= newest_s.max()):
        raise ProblemError(
            f"now_s must not lie before the newest sample, {newest_s.max():.15g}, got {now_s!r}; "
            "drop samples of the future first"
        )
    if daily is not None and timezone is not None:
        from datacollect.measurement.daily import daily_estimates

        by_period = partial(
            estimate, how=how, half_life_s=half_life_s, a=a, quantile=quantile, now_s=now_s
        )
        found = daily_estimates(samples, daily, timezone, by_period)
        found.attrs["notes"] = notes
        return found
    found = pd.DataFrame(
        {
            "from": names[pairs // len(names)],
            "to": names[pairs % len(names)],
            "bandwidth_bytes_per_s": bandwidth,
            "newest_s": newest_s,
            "age_s": now_s - newest_s,
            "n_samples": n_samples,
            "mean_bytes_per_s": _means(y, np.ones(len(y)), first),
            "last_bytes_per_s": y[last],
            "kind": np.array(kinds_in_words(samples), dtype=object)[order][first],
        }
    )
    found.attrs["notes"] = notes
    return found


# Estimates ----------------------------------------------------------------------------------


def _checked_samples(samples: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Return bandwidths and times of valid samples."""
    for column in ("from", "to", "time_s", "bandwidth_bytes_per_s"):
        if column not in samples.columns:
            raise ProblemError(
                f"samples: column {column} is missing, got {_listed(samples.columns)}"
                + nearest_hint(column, map(str, samples.columns))
            )
    for column in ("from", "to"):
        names = samples[column].tolist()
        if any(not isinstance(name, str) for name in names) and samples[column].notna().all():
            row = next(i for i, name in enumerate(names) if not isinstance(name, str))
            raise ProblemError(
                f"samples, row {row}: {column} must be a host's name as text, got {names[row]!r}; "
                "astype(str) turns numbers into texts"
            )
        if samples[column].isna().any():
            row = int(np.argmax(samples[column].isna()))
            raise ProblemError(f"samples, row {row}: {column} must be a host's name, got nothing")
    arrays = []
    for column in ("bandwidth_bytes_per_s", "time_s"):
        values = numbers_of(samples[column], f"samples: {column}", _COUNTED[column], SINCE_1970)
        good = np.isfinite(values) & ((column == "time_s") | (values >= 0))
        if not good.all():
            row = int(np.argmin(good))
            rule = "finite" if column == "time_s" else ">= 0 and finite"
            raise ProblemError(f"samples, row {row}: {column} must be {rule}, got {values[row]:g}")
        arrays.append(values)
    ends = (samples[end].to_numpy(dtype=object) for end in ("from", "to"))
    same = np.equal(*ends).astype(bool)
    if same.any():
        row = int(np.argmax(same))
        raise ProblemError(
            f"samples, row {row}: from and to must differ, got {samples['from'].iloc[row]!r} "
            "twice; remove it"
        )
    return arrays[0], arrays[1]


def _counting(samples: pd.DataFrame, streams: int | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return of each pair the samples of one kind that keep to the rules; warn of the others."""
    samples = frame_of(samples, "samples")
    rates, times = _checked_samples(samples)
    ends = {end: texts_of(samples[end], f"samples: {end}") for end in ("from", "to")}
    plain = samples.assign(**ends, bandwidth_bytes_per_s=rates, time_s=times)
    found = ruled(plain)
    alike = of_one_kind(found.samples, streams)
    notes = (*found.notes, *alike.notes)
    for text in notes:
        warnings.warn(text, DatacollectWarning, stacklevel=3)
    return alike.samples, notes


def _bytes_over_time(samples: pd.DataFrame, order: IntArray, first: IntArray) -> FloatArray:
    """All bytes of each group over all its seconds."""
    sums = []
    for column in ("bytes", "duration_s"):
        if column not in samples.columns:
            raise ProblemError(
                f'samples: column {column} is missing, which how = "mean" needs: all bytes over '
                'all seconds; add it, or use "median"'
            )
        values = numbers_of(samples[column], f"samples: {column}", _COUNTED[column])
        least = 0 if column == "bytes" else np.nextafter(0, 1)
        good = np.isfinite(values) & (values >= least)
        if not good.all():
            row = int(np.argmin(good))
            rule = ">= 0" if column == "bytes" else "> 0"
            raise ProblemError(
                f"samples, row {row}: {column} must be {rule} and finite, got {values[row]:g}; "
                "remove the row"
            )
        sums.append(_sums(values[order], first))
    total_bytes, total_s = sums
    return np.asarray(total_bytes / total_s, dtype=np.float64)


def _weighted_averages(y: FloatArray, first: IntArray, n_samples: IntArray, a: float) -> FloatArray:
    """Last exponentially weighted average of each group of `y`.

    Written out, avg_n = a^(n-1)·y_1 + Σ_{i>=2} (1-a)·a^(n-i)·y_i.
    """
    newer = np.repeat(first + n_samples, n_samples) - 1 - np.arange(len(y))
    weight = a**newer * (1 - a)
    weight[first] = a ** (n_samples - 1)
    return _sums(weight * y, first)


def _means_by_age(
    y: FloatArray, time_s: FloatArray, first: IntArray, n_samples: IntArray, half_life_s: float
) -> FloatArray:
    """Mean of each group of `y`, in order of time, weighted by age against the group's newest."""
    newest_s = np.repeat(time_s[first + n_samples - 1], n_samples)
    with np.errstate(over="ignore"):  # older than all numbers: no weight
        weight = np.exp2((time_s - newest_s) / half_life_s)
    return _means(y, weight, first)  # the newest weighs 1, so no sum of weights is 0


def _means(y: FloatArray, weight: FloatArray, first: IntArray) -> FloatArray:
    """Weighted mean of each group of `y`."""
    # Sums of the largest numbers are none; dividing by a power of 2 changes no digit.
    small = _sums(weight * np.ldexp(y, -_SCALE), first) / _sums(weight, first)
    return np.ldexp(small, _SCALE)


def _sums(values: FloatArray, first: IntArray) -> FloatArray:
    """Sum of each group."""
    return np.add.reduceat(values, first) if len(first) else np.zeros(0)


def _quantiles(y: FloatArray, first: IntArray, n_samples: IntArray, quantile: float) -> FloatArray:
    """Quantile of each group of `y`, sorted within groups; linear between neighbours."""
    position = quantile * (n_samples - 1)
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, n_samples - 1)
    step = y[first + high] - y[first + low]
    quantiles: FloatArray = y[first + low] + (position - low) * step
    return quantiles


def _listed(columns: Iterable[Any]) -> str:
    return ", ".join(str(column) for column in columns) or "no columns"
