"""Puts files of the repository into pages: a line ``<!-- include: PATTERN -->`` becomes the last file that matches.

Markdown goes in without its first heading, Rust as a code block, CSV as a table. ``PATTERN | TEXT`` keeps, of tables, the
rows that have the text. Of Rust examples, what is there for their tests is left out.
Links to files that are no pages become plain text, since the site is read without the repository.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r"^<!-- include: (\S+)(?: \| (.+))? -->$", re.M)
EXAMPLE = re.compile(r"^```rust,\S+\n(.*?)^```$", re.M | re.S)
HIDDEN = re.compile(r"^#(?: .*)?\n", re.M)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")

# Files of the repository that are pages, or parts of pages.
PAGES = {"compare/": "performance.md", "errata.md": "errata.md", "performance.md": "performance.md"}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What MkDocs calls with the text of each page."""
    depth = page.file.src_uri.count("/")
    # What is for the test of an example: words after a comma, and lines that begin with #.
    markdown = EXAMPLE.sub(lambda match: f"```rust\n{HIDDEN.sub('', match[1])}```", markdown)
    return INCLUDE.sub(lambda match: included(match[1], match[2] or "", depth), markdown)


def included(pattern: str, rows: str = "", depth: int = 0) -> str:
    """The text that takes the place of a line; ``depth`` is how many folders down the page is."""
    found = sorted(ROOT.glob(pattern))
    if not found:
        raise FileNotFoundError(f"no file of the repository is {pattern}")
    text = found[-1].read_text(encoding="utf-8")
    if found[-1].suffix == ".rs":
        return f"```rust\n{text.rstrip()}\n```"
    if found[-1].suffix == ".csv":
        head, *body = csv.reader(text.splitlines())
        names = [name.replace("ours_", "").replace("_", " ") for name in head]
        return "\n".join("| " + " | ".join(row) + " |" for row in (names, ["---"] * len(names), *body))
    lines = text.split("\n")
    if lines[0].startswith("# "):
        del lines[0]
    if rows:
        tables = [i for i, line in enumerate(lines) if line.startswith("|")]
        lines = [line for i, line in enumerate(lines) if i in tables[:2] or rows in line]
    return LINK.sub(lambda match: linked(match[1], match[2], depth), "\n".join(lines))


def linked(text: str, target: str, depth: int) -> str:
    """The link to the page that a file of the repository is, or the text alone."""
    page = PAGES.get(target.split("#")[0])
    return f"[{text}]({'../' * depth}{page})" if page else text
