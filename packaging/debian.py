"""Build the agent's Debian package: all that it needs but Python, a user, a service.

It holds what pip brings for each version of Python, one beside the other: modules of Python are the
same for all, and compiled ones have the version in their names. So one package fits all releases
whose Python is among them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = Path(__file__).resolve().with_suffix("")
UNIT = Path(__file__).resolve().parent / "systemd" / "datacollect-agent.service"
NAME = "datacollect-agent"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
AFTER_THESE = "3.15"
# When the sources were committed: packages are built in a clone.
COMMITTED_S = ("git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct")
# Those of wheels that run where C's library is 2.28 or newer, as in Debian 10.
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
SCRIPTS = ("postinst", "prerm", "postrm")

CONTROL = """\
Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: The datacollect authors <datacollect@localhost>
Installed-Size: {kilobytes}
Depends: adduser, libc6 (>= 2.28), python3 (>= {oldest}), python3 (<< {after})
Section: net
Priority: optional
Description: agent of a host in a datacollect collection
 Serves a folder of this host to its collectors over TLS, and relays for others,
 as a service that may do no more than it has to.
"""


def build_deb(wheel: Path) -> Path:
    """Build the package of an agent's wheel, beside it; return its path."""
    if shutil.which("dpkg-deb") is None:
        raise SystemExit(
            "there is no dpkg-deb, which builds it; apt install dpkg, brew install dpkg"
        )
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        root.mkdir(mode=0o755)
        architecture = said("dpkg", "--print-architecture")
        fill(root, wheel, architecture)
        version = debian_version(wheel.name.split("-")[1])
        write_control(root, version, architecture)
        package = wheel.with_name(f"{NAME}_{version}_{architecture}.deb")
        # The same sources give the same bytes.
        environment = os.environ | {"SOURCE_DATE_EPOCH": said(*COMMITTED_S)}
        build = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(package)]
        subprocess.run(build, check=True, env=environment, stdout=subprocess.DEVNULL)
    return package


def debian_version(version: str) -> str:
    """Return a version as Debian orders it: what comes before a release has a tilde.

    >>> debian_version("0.2.0"), debian_version("0.2.0rc1"), debian_version("0.2.0.dev3")
    ('0.2.0', '0.2.0~rc1', '0.2.0~dev3')
    """
    return re.sub(r"\.?(a|b|rc|dev)(\d+)", r"~\1\2", version)


def fill(root: Path, wheel: Path, architecture: str) -> None:
    """Write what the package installs."""
    packages = root / "usr/lib" / NAME
    for python in PYTHONS:
        with tempfile.TemporaryDirectory() as brought:
            bring(Path(brought), wheel, python, architecture)
            merge(Path(brought), packages)
    write(root / "usr/bin" / NAME, (SOURCES / NAME).read_text(), 0o755)
    write(root / "usr/lib/systemd/system" / UNIT.name, unit())
    documents = root / "usr/share/doc" / NAME
    write(documents / "README.Debian", (SOURCES / "README.Debian").read_text())
    others = (
        "Licences of the packages that come with it are in /usr/lib/datacollect-agent/*.dist-info."
    )
    write(documents / "copyright", (REPOSITORY / "LICENSE").read_text() + f"\n{others}\n")


def bring(folder: Path, wheel: Path, python: str, architecture: str) -> None:
    """Have pip install the wheel and all that it needs, for a version of Python."""
    if architecture not in MACHINES:
        raise SystemExit(f"{architecture}: packages are built for {' and '.join(MACHINES)} alone")
    platforms = [f"--platform={each}_{MACHINES[architecture]}" for each in PLATFORMS]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"]
    # Some need it before 3.12, and pip judges that by the Python that runs it.
    wanted = ["--python-version", python, "--target", str(folder), str(wheel), "typing-extensions"]
    subprocess.run([*pip, *platforms, *wanted], check=True)
    shutil.rmtree(folder / "bin", ignore_errors=True)  # its program is another
    for path in folder.glob("*.dist-info/*"):
        # Which files pip has brought for one version, from where; all else is the same for all.
        if path.name in ("RECORD", "WHEEL", "direct_url.json", "INSTALLER", "REQUESTED"):
            path.unlink()


def merge(brought: Path, packages: Path) -> None:
    """Add what was brought for a version of Python; what is there already has to be the same."""
    packages.mkdir(parents=True, exist_ok=True)
    for path in sorted(brought.rglob("*")):
        target = packages / path.relative_to(brought)
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif not target.exists():
            shutil.copyfile(path, target)
        elif path.read_bytes() != target.read_bytes():
            raise SystemExit(
                f"{path.relative_to(brought)} is not the same for all of Python "
                f"{', '.join(PYTHONS)}: leave out those that get another version of it"
            )


def unit() -> str:
    """Return the service, as it is where the package has set all up that its comments tell."""
    text = UNIT.read_text(encoding="utf-8")
    text = text[text.index("[Unit]") :]
    text = text.replace(f"ExecStart=/usr/local/bin/{NAME}", f"ExecStart=/usr/bin/{NAME}")
    # Nothing is unpacked.
    return re.sub(
        r"# Where a \.pyz .*\n(CacheDirectory|Environment)=.*\n(Environment=.*\n)?", "", text
    )


def write_control(root: Path, version: str, architecture: str) -> None:
    """Write what dpkg has to know, and the scripts that it runs."""
    control = CONTROL.format(
        name=NAME,
        version=version,
        architecture=architecture,
        kilobytes=sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024,
        oldest=PYTHONS[0],
        after=AFTER_THESE,
    )
    write(root / "DEBIAN/control", control)
    for script in SCRIPTS:
        write(root / "DEBIAN" / script, (SOURCES / script).read_text(), 0o755)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file of the package."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def said(*command: str) -> str:
    """Return what a command says."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
