"""A real pull on this machine: two sources, a blind relay, a collector, each a process of its own.

    python experiments/pull_demo.py FOLDER

It writes the keys, files and settings that three hosts would have into FOLDER, starts the agents,
collects 60 MB through the relay and straight, and compares every byte. No root, no other host.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

DATACOLLECT = Path(sysconfig.get_path("scripts"), "datacollect")
SOURCES = {"S1": 40_000_000, "S2": 20_000_000}


def shown(*arguments: str, folder: Path) -> str:
    """Run a command of ours, showing it; return what it prints."""
    print(f"$ datacollect {' '.join(arguments)}", flush=True)
    done = subprocess.run(
        [DATACOLLECT, *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    print(done.stdout, end="", flush=True)
    return done.stdout


def agent(
    name: str, folder: Path, key: str, more: str
) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """Start an agent; return it and what it says of itself."""
    (folder / f"{name}.toml").write_text(
        f'format = "datacollect-agent/1"\nname = "{name}"\nlisten = "127.0.0.1:0"\n'
        f'collectors = ["{key}"]\n{more}\n'
    )
    print(f"$ datacollect agent {name}.toml &", flush=True)
    child = subprocess.Popen(
        [DATACOLLECT, "agent", f"{name}.toml", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    return child, json.loads(child.stdout.readline())


def main() -> None:
    """Set three hosts up in a folder, and collect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("demo/pull"))
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shown("keys", "new", "collector.key", folder=folder)
    key = shown("keys", "show", "collector.key", folder=folder).split()[-1]
    for source, n_bytes in SOURCES.items():
        (folder / source.lower()).mkdir()
        (folder / source.lower() / "data.bin").write_bytes(os.urandom(n_bytes))
    children = []
    try:
        says = {}
        for source in SOURCES:
            child, says[source] = agent(source, folder, key, f'serve = "{source.lower()}"')
            children.append(child)
        places = {name: said["url"].removeprefix("https://") for name, said in says.items()}
        known = ", ".join(f'{name} = "{place}"' for name, place in places.items())
        child, says["R"] = agent("R", folder, key, f"connect_to = {{ {known} }}")
        children.append(child)
        lines = [
            'format = "datacollect-collection/1"',
            'destination = "D"',
            'key = "collector.key"',
        ]
        # S1 is reached faster over R, S2 straight.
        for a, b, rate in (
            ("S1", "R", 40e6),
            ("R", "D", 40e6),
            ("S1", "D", 10e6),
            ("S2", "D", 20e6),
        ):
            lines += [
                "[[links]]",
                f'from = "{a}"',
                f'to = "{b}"',
                f"bandwidth_bytes_per_s = {rate}",
            ]
        for name, said in says.items():
            lines += [f"[agents.{name}]", f'url = "{said["url"]}"']
            lines.append(f'fingerprint = "{said["fingerprint"]}"')
        (folder / "collection.toml").write_text("\n".join(lines) + "\n")
        shown("pull", "collection.toml", "--into", "here", "--method", "coordinated", folder=folder)
        shown("status", "here", folder=folder)
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait()
    for source in SOURCES:
        sent, came = folder / source.lower() / "data.bin", folder / "here" / source / "data.bin"
        if not filecmp.cmp(sent, came, shallow=False):
            raise SystemExit(f"{came} differs from {sent}")
    print("every byte is the same")


if __name__ == "__main__":
    main()
