"""Metrics of a program, for Prometheus: tables of numbers by labels, and who answers with them.

Programs keep plain numbers; nothing of Prometheus' library is in their way. It is loaded where
metrics are wanted, and writes what is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError
from datacollect.installation import command_for_extra, is_absent
from datacollect.net.few_http import FewHandler, FewServer
from datacollect.net.names import host_port_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    Families: TypeAlias = Callable[[], Iterable["Family"]]

# Series that a program tells at most; a Prometheus keeps each for weeks.
MOST_SERIES = 1000
COUNTER, GAUGE = "counter", "gauge"
PATH = "/metrics"


@dataclass(frozen=True)
class Family:
    """Numbers of one name.

    Attributes
    ----------
    name : str
        With its unit; without ``_total``, which counters get.
    text : str
        What it is, in a sentence.
    kind : str
        ``counter`` or ``gauge``.
    labels : tuple of str
        Names of the labels.
    values : mapping of tuple of str to float
        By what the labels are.
    """

    name: str
    text: str
    kind: str
    labels: tuple[str, ...] = ()
    values: Mapping[tuple[str, ...], float] = field(default_factory=dict)


def counter(name: str, text: str, labels: tuple[str, ...], values: Any) -> Family:
    """Return a family of what only grows."""
    return Family(name, text, COUNTER, labels, dict(values))


def gauge(name: str, text: str, labels: tuple[str, ...], values: Any) -> Family:
    """Return a family of what rises and falls."""
    return Family(name, text, GAUGE, labels, dict(values))


def one(name: str, text: str, value: float | None, kind: str = GAUGE) -> Family:
    """Return a family of one number; of none where it is not known."""
    return Family(name, text, kind, (), {} if value is None else {(): value})


class MetricsServer:
    """Answers ``GET /metrics``: ``with MetricsServer(address, families, where) as server``.

    Parameters
    ----------
    address : (str, int)
        Port 0: any free one.
    families : callable
        Returns what there is to tell, from any thread.
    where : str
        What names the address, for messages.

    Attributes
    ----------
    url : str

    Raises
    ------
    ProblemError
        The port is taken, or Prometheus' library is not installed.
    """

    def __init__(self, address: tuple[str, int], families: Families, where: str) -> None:
        self._server = _Server(address, _writer(families, where), where)
        host, port = map(str, self._server.server_address[:2])
        self.url = f"http://{host_port_text(host, int(port))}{PATH}"

    def __enter__(self) -> MetricsServer:
        """Begin; raise `TransferError` where there is no thread is available."""
        self._server.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End."""
        self._server.__exit__(kind, error, at)

    def close(self) -> None:
        """Give the address back, where it has not begun."""
        self._server.server_close()


def _writer(families: Families, where: str) -> Callable[[], tuple[bytes, str]]:
    """Return what writes all there is to tell, in the text format of Prometheus.

    Raises
    ------
    ProblemError
        The library is not installed.
    """
    try:
        from prometheus_client import core
    except ImportError as error:
        if not is_absent(error, "prometheus_client"):
            raise
        raise ProblemError(
            f"{where}: prometheus-client is not installed, which writes metrics: "
            f"{command_for_extra('metrics')}"
        ) from None
    from prometheus_client import (
        CONTENT_TYPE_PLAIN_0_0_4,
        CollectorRegistry,
        ProcessCollector,
        generate_latest,
    )

    kinds: dict[str, Any] = {
        COUNTER: core.CounterMetricFamily,
        GAUGE: core.GaugeMetricFamily,
    }

    class Collector:
        """Collector that a registry asks."""

        def collect(self) -> Iterator[Any]:
            for each in families():
                made = kinds[each.kind](each.name, each.text, labels=each.labels)
                for labels, value in each.values.items():
                    made.add_metric(labels, value)
                yield made

        def describe(self) -> list[Any]:
            return []

    registry: Any = CollectorRegistry()
    registry.register(Collector())
    # Memory, processor time, open files: of this process, where there is a /proc.
    ProcessCollector(registry=registry)
    return lambda: (generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4)


class _Server(FewServer):
    def __init__(
        self, address: tuple[str, int], write: Callable[[], tuple[bytes, str]], where: str
    ) -> None:
        self.write = write
        super().__init__(address, _Handler, where)


class _Handler(FewHandler):
    server: _Server

    def reply(self) -> None:
        """Answer with all there is."""
        if self.path.partition("?")[0] == PATH:
            data, kind = self.server.write()
            self.answer(200, kind, data)
        else:
            self.answer(404, "text/plain", b"there is /metrics alone\n")
