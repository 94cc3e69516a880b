"""The examples in the documentation run."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest

import synchromesh as sm

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
PACKAGE = Path(__file__).parents[1]
BOOK = PACKAGE.parents[1] / "docs/book/src"
PAGES = [PACKAGE / "README.md", PACKAGE.parents[1] / "README.md", *sorted(BOOK.rglob("*.md"))]


def test_the_packages_own_example():
    assert doctest.testmod(sm).failed == 0


def run_blocks(page: Path) -> None:
    """Executes the Python blocks of a page, one after another in one namespace."""
    names: dict[str, object] = {"__name__": "page"}
    for block in BLOCK.findall(page.read_text()):
        exec(compile(block, str(page), "exec"), names)


# The page on Ray needs a cluster, and is run where there is one.
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "ray"], ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "\nimport onnx" in page.read_text():
        pytest.importorskip("onnx")
    run_blocks(page)


def test_the_tutorials_are_there():
    assert len(PAGES) > 8
    assert all(BLOCK.search(page.read_text()) for page in PAGES if "tutorials" in page.parts)


def test_the_notebook_runs(monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    notebook = json.loads((PACKAGE / "examples/correlations.ipynb").read_text())
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            exec(compile("".join(cell["source"]), "correlations.ipynb", "exec"), names)
    assert names["result"]._repr_html_() and names["plan"]._repr_html_()
