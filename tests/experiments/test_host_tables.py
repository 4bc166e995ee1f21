"""Tables on hosts are those that their script writes."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_the_tables_of_docs_are_written_by_the_script(scripts):
    tables, shown = scripts("host_tables"), scripts("shown_tables").shown
    found = {name: table() for name, table in tables.TABLES.items()}
    assert {name for name, text in found.items() if text != shown(f"host_{name}")} == set()
