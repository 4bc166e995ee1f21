"""What lost packets do to the correlation of two signals of noise, beside the EXPReS report.

    python experiments/feed_noise.py [--integrations 800]

Two stations record noise in two bits a sample, of which a part is common to both; the correlator
finds its amplitude. Packets of one of them are left out by a drop set, as `datacollect feed send`
leaves them out, and filled as the receiver fills them. Where it is known which are missing, as
`.holes` and the pattern tell, a correlator leaves their samples out of its sums; else what was
filled in counts as signal. *Closed up*: nothing is filled in, and all that follows is at the wrong
place.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.feeds.formats.packets import USUAL_MESSAGE_BYTES
from datacollect.feeds.udp.drop_sets import dropped
from datacollect.feeds.udp.filling import filling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FILLS = ("zero", "pattern", "random")
KINDS = ("single", "bunches")
PARTS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
SAMPLES_PER_BYTE = 4
COMMON = 0.02  # of the power
PACKETS = 25  # of an integration
# Two bits, four levels: thresholds and weights of least loss (Thompson, Moran, Swenson,
# "Interferometry and Synthesis in Radio Astronomy", section 8.3).
THRESHOLD, OUTER = 0.9816, 3.3359
WEIGHTS = np.array([-OUTER, -1.0, 1.0, OUTER])


def quantised(signal: Floats) -> Floats:
    """Return the weights of a signal's samples in two bits.

    >>> quantised(np.array([-2.0, -0.1, 0.1, 2.0])).tolist()
    [-3.3359, -1.0, 1.0, 3.3359]
    """
    found: Floats = WEIGHTS[np.digitize(signal, (-THRESHOLD, 0.0, THRESHOLD))]
    return found


def unpacked(data: bytes) -> Floats:
    """Return the weights of samples of two bits, the lowest first.

    >>> unpacked(bytes([0b11_10_01_00])).tolist()
    [-3.3359, -1.0, 1.0, 3.3359]
    """
    one = np.frombuffer(data, dtype=np.uint8)
    codes = (one[:, np.newaxis] >> np.array([0, 2, 4, 6], dtype=np.uint8)) & 3
    found: Floats = WEIGHTS[codes.ravel()]
    return found


class Sums(NamedTuple):
    """Sums over each packet's samples.

    Attributes
    ----------
    xy, xx, yy : ndarray, shape (n,)
        Of the two stations as recorded.
    fill_y, fill_fill : mapping of str to ndarray
        By fill: what stands in place of the first station's samples.
    shifted_xy : ndarray, shape (n,)
        Of samples that are no longer beside those of the same instant.
    """

    xy: Floats
    xx: Floats
    yy: Floats
    fill_y: dict[str, Floats]
    fill_fill: dict[str, Floats]
    shifted_xy: Floats


def filled_in(fill: str, n_bytes: int, at: int) -> bytes:
    """Return what a receiver has at a hole: zeros, where it writes nothing."""
    found = bytearray(n_bytes)
    for place, data in filling(fill, at, n_bytes):
        found[place - at : place - at + len(data)] = data
    return bytes(found)


def recorded(n_packets: int, seed: int) -> Sums:
    """Draw what two stations record, packet by packet."""
    rng = np.random.default_rng(seed)
    n_bytes = USUAL_MESSAGE_BYTES
    n = n_bytes * SAMPLES_PER_BYTE
    rows: list[tuple[float, ...]] = []
    before = np.zeros(n)
    for packet in range(n_packets):
        common, one, other = rng.standard_normal((3, n))
        x = quantised(np.sqrt(COMMON) * common + np.sqrt(1 - COMMON) * one)
        y = quantised(np.sqrt(COMMON) * common + np.sqrt(1 - COMMON) * other)
        fills = [unpacked(filled_in(fill, n_bytes, packet * n_bytes)) for fill in FILLS]
        rows.append(
            (
                *(x @ y, x @ x, y @ y, before @ y),
                *(fill @ y for fill in fills),
                *(fill @ fill for fill in fills),
            )
        )
        before = x
    xy, xx, yy, shifted, *others = np.array(rows).T
    by_fill = dict(zip(FILLS, others[: len(FILLS)], strict=True))
    squares = dict(zip(FILLS, others[len(FILLS) :], strict=True))
    return Sums(xy, xx, yy, by_fill, squares, shifted)


class Found(NamedTuple):
    """Mean amplitude, and signal to noise, both ÷ what they are without losses."""

    amplitude: float
    signal_to_noise: float


def amplitudes(xy: Floats, xx: Floats, yy: Floats) -> Floats:
    """Return the correlation of each integration, from sums over packets."""

    def of(sums: Floats) -> Floats:
        found: Floats = sums[: len(sums) // PACKETS * PACKETS].reshape(-1, PACKETS).sum(axis=1)
        return found

    result: Floats = of(xy) / np.sqrt(of(xx) * of(yy))
    return result


def judged(sums: Sums, kind: str, part: float, treatment: str, seed: int = 1) -> Found:
    """Return what losses do.

    Parameters
    ----------
    treatment : str
        A fill, taken for signal; ``"left out"``; or ``"closed up"``.
    """
    n = len(sums.xy)
    gone = np.zeros(n, dtype=bool)
    gone[dropped(kind, part, seed, n)] = True
    if treatment == "left out":
        xy, xx, yy = (np.where(gone, 0.0, each) for each in (sums.xy, sums.xx, sums.yy))
    elif treatment == "closed up":
        # The first packet that is missing puts all others to a wrong place.
        xy = np.where(np.cumsum(gone) > 0, sums.shifted_xy, sums.xy)
        xx, yy = sums.xx, sums.yy
    else:
        xy = np.where(gone, sums.fill_y[treatment], sums.xy)
        xx = np.where(gone, sums.fill_fill[treatment], sums.xx)
        yy = sums.yy
    whole = amplitudes(sums.xy, sums.xx, sums.yy)
    lossy = amplitudes(xy, xx, yy)
    mean, noise = float(lossy.mean()), float(lossy.std())
    return Found(
        mean / float(whole.mean()), mean / noise / (float(whole.mean()) / float(whole.std()))
    )


HEAD = (
    "| left out | kind | amplitude: holes known | zero taken for signal | pattern | random "
    "| closed up | signal to noise: holes known | √(1 − f) |\n"
    "|--:|---|--:|--:|--:|--:|--:|--:|--:|\n"
)


def table(n_integrations: int, seed: int = 1) -> str:
    """Return a table in Markdown."""
    sums, lines = recorded(n_integrations * PACKETS, seed), []
    for part in PARTS:
        for kind in KINDS:
            known = judged(sums, kind, part, "left out")
            others = [judged(sums, kind, part, one).amplitude for one in (*FILLS, "closed up")]
            lines.append(
                f"| {100 * part:g} % | {kind} | {known.amplitude:.3f} | "
                + " | ".join(f"{one:.3f}" for one in others)
                + f" | {known.signal_to_noise:.3f} | {np.sqrt(1 - part):.3f} |\n"
            )
    return HEAD + "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--integrations", type=int, default=800)
    print(table(parser.parse_args().integrations), end="")


if __name__ == "__main__":
    main()
