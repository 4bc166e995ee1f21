"""The notebooks of the documentation run from top to bottom, in a kernel as their readers do.

They are committed without outputs: times and ports differ from run to run, and a picture or a table
that nobody has computed again would be believed. Who wants outputs runs them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_have_no_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert [cell.get("outputs", []) for cell in cells] == [[]] * len(cells)
    assert not [cell for cell in cells if cell.get("execution_count")]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    """In a kernel an event loop runs already, which scripts do not have."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    ran = nbclient.NotebookClient(notebook, timeout=300, resources=place).execute()
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [out for cell in code for out in cell.outputs if out.output_type == "error"]
