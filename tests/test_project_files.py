"""Files beside the code say what the code and setup.cfg say."""

from __future__ import annotations

import subprocess
from configparser import ConfigParser
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[1]

CONFIG = ConfigParser()
CONFIG.read(REPOSITORY / "setup.cfg", encoding="utf-8")


def read_yaml(name):
    return yaml.safe_load((REPOSITORY / name).read_text(encoding="utf-8"))


def packages_of(extra):
    lines = CONFIG["options.extras_require"][extra].split("\n")
    return {line.partition(">")[0].strip() for line in lines if line.strip()}


def test_the_software_is_cited_as_it_is_called():
    cited, metadata = read_yaml("CITATION.cff"), CONFIG["metadata"]
    assert cited["cff-version"] == "1.2.0"
    assert cited["type"] == "software"
    assert cited["title"] == metadata["name"]
    assert str(cited["version"]) == metadata["version"]
    assert cited["license"] == metadata["license_expression"]
    assert set(cited["keywords"]) == set(metadata["keywords"].split(", "))
    assert cited["abstract"].startswith(metadata["description"])
    assert {"message", "authors"} <= set(cited)


def test_the_paper_is_cited_as_the_readme_cites_it():
    (paper,) = read_yaml("CITATION.cff")["references"]
    words = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    readme = " ".join(words.replace("\n>", " ").split())
    names = [f"{author['given-names']} {author['family-names']}" for author in paper["authors"]]
    cited = f'{", ".join(names[:-1])} and {names[-1]}, "{paper["title"]}", {paper["number"]}'
    assert f"{cited}, {paper['institution']['name']}, {paper['year']}" in readme


def test_the_documentation_is_built_elsewhere_as_it_is_here():
    tree = read_yaml(".readthedocs.yaml")
    assert (REPOSITORY / tree["sphinx"]["configuration"]).is_file()
    (installed,) = tree["python"]["install"]
    assert "docs" in installed["extra_requirements"]
    assert set(installed["extra_requirements"]) <= set(CONFIG["options.extras_require"])
    version = tree["build"]["tools"]["python"]
    assert f"Programming Language :: Python :: {version}" in CONFIG["metadata"]["classifiers"]


def test_hooks_call_what_developers_have_installed():
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    called = {hook["entry"].split()[0] for hook in repository["hooks"]}
    assert called == {"ruff", "mypy"} <= packages_of("lint")


def test_a_source_distribution_has_all_that_is_kept():
    """Each file and folder at the top is a package's, read by setuptools, or in MANIFEST.in."""
    command = ["git", "ls-files", "--", ":/"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        return  # this is a source distribution
    manifest = (REPOSITORY / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    lines = [line.split() for line in manifest if line.startswith(("include ", "graft "))]
    named = {name for _, *names in lines for name in names}
    by_itself = {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.cfg"}
    packages = {
        folder.partition("/")[0] for folder in CONFIG["options"]["package_dir"].split()[2::3]
    }
    # Of packages it names what a wheel leaves out.
    named = {name for name in named if name.partition("/")[0] not in packages}
    of_clones = {".gitignore"}
    tops = {name.partition("/")[0] for name in done.stdout.splitlines()}
    assert tops - by_itself - packages - of_clones == named
