"""The pages under docs/ become a site without a warning; tests and pages they name are there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def cited(page):
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_is_named_is_there(page):
    for file, name in cited(page):
        assert re.search(rf"^ *(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), (
            f"{file} has no {name}")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_link_inside_the_tree_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(("page", "rows"), [("rules-gateware.md", 22), ("public-cases.md", 35)])
def test_every_row_names_a_test(page, rows):
    lines = [line for line in (ROOT / "docs/reference" / page).read_text().splitlines()
             if line.startswith("| ") and not re.match(r"\| (section|part|case) \|", line)]
    assert len(lines) >= rows
    for line in lines:
        assert "::" in line, line


def test_the_site_is_built_without_a_warning(tmp_path):
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir",
                           str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.rglob("index.html"))) >= len(PAGES)


def test_every_page_is_reached_from_the_first_one():
    seen, waiting = set(), [ROOT / "docs/index.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            waiting += [(page.parent / target).resolve() for target in re.findall(
                r"\]\(([^)#:]+\.md)", page.read_text(encoding="utf-8"))]
    assert set(PAGES) <= seen
