"""Alerts about agents and pulls: what brings them about, and that they ask for what is told."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from conftest import REPOSITORY, need
from instances.agent_cores import START_S, core

from datacollect.transfer.agent.metrics import agent_families
from datacollect.transfer.pull.progress.metrics import pull_families
from datacollect.transfer.pull.progress.story import PullStory

RULES = REPOSITORY / "packaging" / "prometheus" / "datacollect.rules.yml"
SERIES = Path(__file__).parent / "instances" / "alert_series.yml"
# Of the process itself, and of the scrape: Prometheus and its library tell them.
OF_OTHERS = {"up", "process_open_fds", "process_max_fds"}


def rules():
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_each_alert_comes_where_it_should_and_nowhere_else(tmp_path):
    need("promtool")
    for path in (RULES, SERIES):
        shutil.copy(path, tmp_path)
    for arguments in (("check", RULES.name), ("test", SERIES.name)):
        verb, file = arguments
        done = subprocess.run(
            ["promtool", verb, "rules", file],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tried():
    tried = yaml.safe_load(SERIES.read_text(encoding="utf-8"))["tests"]
    names = {row["alertname"] for test in tried for row in test["alert_rule_test"]}
    came = {
        row["alertname"] for test in tried for row in test["alert_rule_test"] if row["exp_alerts"]
    }
    assert names == came == {rule["alert"] for rule in rules()}


@pytest.fixture
def told(tmp_path):
    """Names of all that agents and pulls tell, and of labels."""
    families = [*agent_families(core(tmp_path), "1", START_S), *pull_families(PullStory())]
    names = {each.name + ("_total" if each.kind == "counter" else "") for each in families}
    return names, {label for each in families for label in each.labels}


def test_alerts_ask_for_what_is_told(told):
    """A name that nobody tells would never bring an alert about."""
    names, labels = told
    for rule in rules():
        asked = set(re.findall(r"\b(?:datacollect|process)_\w+|\bup\b", rule["expr"]))
        assert asked <= names | OF_OTHERS, rule["alert"]
        matched = set(re.findall(r"(\w+)=~?\"", rule["expr"]))
        assert matched <= labels | {"job"}, rule["alert"]
        # Whoever is woken is told what happened and what to do.
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["remedy"].endswith(".")
