"""Facts of a machine that need no measuring: processors, kernel, network cards, limits."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.machine.parts import Nic
from datacollect.measuring.hosts.processor_times import allowed_processors

if TYPE_CHECKING:
    from collections.abc import Iterable

SYSCTLS = ("net/core/rmem_max", "net/core/wmem_max", "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem")
# What a card may do instead of the processor, as ethtool calls it.
OFFLOADS = {
    "tx-checksumming": "checksums",
    "tcp-segmentation-offload": "TSO",
    "generic-receive-offload": "GRO",
    "large-receive-offload": "LRO",
    "tls-hw-tx-offload": "TLS",
}
# A device that gives memory back, and the bit by which it does so at any time.
BALLOON, REPORTING_BIT = "0x0005", 5
PATIENCE_S = 5.0
MBIT_BYTES = 125_000


def processors_of(allowed: int, root: Path = Path("/")) -> float:
    """Return how many processors a program may use: a container may have a share of them.

    Parameters
    ----------
    allowed : int
        Those that this process may run on.
    root : Path, optional
        Where the system's files lie.
    """
    limits = [float(allowed), *_quotas(root)]
    return min(limits)


def _quotas(root: Path) -> Iterable[float]:
    """Yield limits of the control groups that this process is in, of both versions."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = (*line.split(":", 2), "", "")[:3]
        version_2 = not controllers
        if not version_2 and "cpu" not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("" if version_2 else controllers)
        folder = base / name.lstrip("/")
        for each in (folder, *folder.parents):
            if not each.is_relative_to(base):
                break
            words = (
                _text(each / "cpu.max").split()
                if version_2
                else [_text(each / f"cpu.cfs_{what}_us") for what in ("quota", "period")]
            )
            if len(words) == 2 and all(re.fullmatch(r"\d+", word.strip()) for word in words):
                quota, period = map(int, words)
                if quota > 0 and period > 0:
                    yield quota / period


def nics_of(root: Path = Path("/")) -> tuple[Nic, ...]:
    """Return the network cards that lead out of this machine, as far as the system tells."""
    found = []
    for folder in sorted((root / "sys/class/net").glob("*")):
        if folder.name == "lo" or _text(folder / "operstate") not in ("up", "unknown"):
            continue
        mbit_per_s, mtu = _number(folder / "speed"), _number(folder / "mtu")
        queues = len(list(folder.glob("queues/rx-*")))
        found.append(
            Nic(
                folder.name,
                float(mbit_per_s * MBIT_BYTES) if mbit_per_s > 0 else None,
                mtu if mtu > 0 else None,
                queues or None,
                _offloads(folder.name),
            )
        )
    return tuple(found)


def _offloads(name: str) -> str | None:
    """Return what a card does instead of the processor, as ethtool tells, where it is there."""
    ethtool = shutil.which("ethtool", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if ethtool is None:
        return None
    try:
        done = subprocess.run(
            [ethtool, "-k", name], capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return offloads_in(done.stdout) if done.returncode == 0 else None


def offloads_in(text: str) -> str:
    r"""Return the offloads that ``ethtool -k`` says are on.

    >>> offloads_in("tx-checksumming: on\ngeneric-receive-offload: off [fixed]\n")
    'checksums'
    """
    on = {line.partition(":")[0].strip() for line in text.splitlines() if ": on" in line}
    return ", ".join(words for name, words in OFFLOADS.items() if name in on) or "none"


def facts_of(root: Path = Path("/")) -> dict[str, str]:
    """Return facts of the machine, for people."""
    cpuinfo = _text(root / "proc/cpuinfo")
    model = re.search(r"^(?:model name|Model|Processor)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    governor = _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    is_virtual = re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE) is not None
    product = _text(root / "sys/class/dmi/id/product_name")
    facts = {
        "processor": model[1].strip() if model else platform.machine(),
        "kernel": f"{platform.system()} {platform.release()}",
        "governor": governor or "not told",
        "virtual": f"yes{product and f', {product}'}" if is_virtual else "not that it shows",
    }
    if gives_memory_back(root):
        facts["memory"] = "free pages go to the host of this virtual machine and come back slowly"
    for name in SYSCTLS:
        if value := " ".join(_text(root / "proc/sys" / name).split()):
            facts[name.rpartition("/")[2]] = value
    return {key: value for key, value in facts.items() if value.isprintable()}


def gives_memory_back(root: Path = Path("/")) -> bool:
    """Return whether free memory goes to the host of this virtual machine (virtio 1.2, 5.5)."""
    return any(
        _text(each / "device") == BALLOON and _text(each / "features")[REPORTING_BIT:][:1] == "1"
        for each in (root / "sys/bus/virtio/devices").glob("*")
    )


def usable_processors() -> float:
    """Return how many processors a program here may use."""
    return processors_of(len(allowed_processors()))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int:
    text = _text(path)
    return int(text) if re.fullmatch(r"\d+", text) else -1
