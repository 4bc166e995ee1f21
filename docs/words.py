"""Count the words that people wrote, page by page: `python docs/words.py [REPOSITORY]`.

| column | words in |
|---|---|
| prose | sentences |
| code | blocks of code and of output |
| tables | rows of tables that stand in the page's source |
| reference | pages that list formats, keys, the API and literature, and pages that commands write |

Tables that scripts write into docs/tables, for pages to include, are not counted, nor are comments.
A number that a page has by its name is one word.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# What is looked up, not read, and what commands write.
REFERENCE = {
    *("api.md", "formats.md", "references.md", "scenario_keys.md"),
    *("connection_gaps.md", "exploring_table.md", "faults_table.md"),
    *("misbehaving_table.md", "misbehaving_answers_table.md"),
}
COMMENT = re.compile(r"<!--.*?-->|```\{include\} .*?```", re.DOTALL)
NUMBER = re.compile(r"\{\{ (\S+) \}\}")
BLOCK = re.compile(r"^( *)(```+)(?!\{(?!code-block)).*?^\1\2 *$", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^ *\|.*$", re.MULTILINE)


def main() -> None:
    """Print a row for each page, and their sum."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    counts = {str(page.relative_to(root)): words_of(page) for page in pages(root)}
    counts["together"] = tuple(map(sum, zip(*counts.values(), strict=True)))
    print(f"{'page':32} {'prose':>7} {'code':>7} {'tables':>7} {'reference':>9}")
    for page, (prose, code, tables, reference) in counts.items():
        print(f"{page:32} {prose:7} {code:7} {tables:7} {reference:9}")


def pages(root: Path) -> list[Path]:
    """Return the pages of a repository that people read."""
    first = [root / name for name in ("README.md", "CONTRIBUTING.md", "experiments/README.md")]
    found = sorted((root / "docs").rglob("*.md"))
    return [*first, *(page for page in found if not {"_build", "tables"} & {*page.parts})]


def words_of(page: Path) -> tuple[int, int, int, int]:
    """Return the words of a page's prose, code and tables, and of what is looked up there."""
    text = NUMBER.sub(r"\1", COMMENT.sub("", page.read_text(encoding="utf-8")))
    in_all, without_code = len(text.split()), BLOCK.sub("", text)
    if page.name in REFERENCE:
        return 0, 0, 0, in_all
    n_without, n_prose = len(without_code.split()), len(ROW.sub("", without_code).split())
    return n_prose, in_all - n_without, n_without - n_prose, 0


if __name__ == "__main__":
    main()
