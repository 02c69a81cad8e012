"""The rule "parses, or raises the remote error, nothing else", for a few seconds of each fuzzer.

hypothesis changes good octets everywhere; atheris, where it has wheels, looks for new paths.
`make fuzz` runs atheris for longer.
"""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

FOLDER = Path(__file__).parent


def _load(name):
    spec = importlib.util.spec_from_file_location(f"rocetap_fuzz_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


targets = _load("targets")
NAMES = list(targets.TARGETS)[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_the_seeds_are_good(name):
    for octets in targets.SEEDS[name]:
        targets.TARGETS[name](octets)


@st.composite
def changed(draw, seeds):
    """A good seed, or several, with octets changed, cut out and put in."""
    octets = bytearray(b"".join(draw(st.lists(st.sampled_from(seeds), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(octets)))
        length = draw(st.integers(0, 8))
        octets[at:at + length] = draw(st.one_of(
            st.binary(max_size=8), st.sampled_from([b"\xff\xff", b"\0\0", b"\0\x04", b"\0\x03"])))
    return bytes(octets)


@pytest.mark.parametrize("name", NAMES)
def test_changed_seeds(name):
    @seed(7)
    @settings(max_examples=100, deadline=None, database=None)
    @given(changed(targets.SEEDS[name]))
    def run(octets):
        targets.TARGETS[name](octets)

    run()


@pytest.mark.parametrize("name", NAMES)
def test_any_octets(name):
    @seed(8)
    @settings(max_examples=100, deadline=None, database=None)
    @given(st.binary(max_size=300))
    def run(octets):
        targets.TARGETS[name](octets)

    run()


def _atheris(tmp_path, *arguments, program=FOLDER / "run.py"):
    return subprocess.run([sys.executable, str(program), *arguments], cwd=tmp_path, timeout=120,
                          capture_output=True, text=True, check=False)


if importlib.util.find_spec("atheris"):
    def test_three_seconds_of_atheris(tmp_path):
        done = _atheris(tmp_path, "everything", "3", "-seed=1")
        assert done.returncode == 0, done.stderr[-3000:]
        runs = int(re.search(r"Done (\d+) runs", done.stderr)[1])
        assert runs > 100
        assert not list(tmp_path.iterdir())

    def test_a_broken_rule_is_found(tmp_path):
        """The same run with a decoder that lets another error out."""
        broken = tmp_path / "run.py"
        broken.write_text((FOLDER / "run.py").read_text().replace(
            "str(Path(__file__).parent)", repr(str(FOLDER))).replace(
            "atheris.Fuzz()", "atheris.Fuzz()  # unchanged").replace(
            "TARGETS[name])", "broken(TARGETS[name]))").replace(
            "def main(", '''def broken(target):
    def run(octets):
        target(octets)
        if octets[:2] == b"\\\\xff\\\\x00":
            raise KeyError("let out")
    return run


def main(''').replace("\\\\x", "\\x"))
        done = _atheris(tmp_path, "link", "20", "-seed=1", program=broken)
        assert done.returncode != 0
        assert "KeyError: 'let out'" in done.stdout + done.stderr
        assert [path.read_bytes()[:2] for path in tmp_path.glob("crash-*")] == [b"\xff\x00"]
