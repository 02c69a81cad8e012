"""Fuzzes one target with atheris: `python tests/fuzz/run.py TARGET SECONDS [libFuzzer options]`.

Needs the `test` extra on a platform that atheris has wheels for. An input that breaks the rule is
printed, written to `crash-*` in the working folder, and ends the run with another code than 0.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["rocetap"]):
    from targets import SEEDS, TARGETS


def main(arguments: list[str]) -> None:
    """Runs until the seconds are over or the rule is broken."""
    if len(arguments) < 3 or arguments[1] not in TARGETS:
        sys.exit(f"usage: {arguments[0]} {'|'.join(TARGETS)} SECONDS [libFuzzer options]")
    name, seconds, *options = arguments[1:]
    with tempfile.TemporaryDirectory(prefix="rocetap-fuzz-") as corpus:
        for number, seed in enumerate(SEEDS[name]):
            (Path(corpus) / f"seed-{number}").write_bytes(seed)
        atheris.Setup([arguments[0], f"-max_total_time={seconds}", "-max_len=4096",
                       "-rss_limit_mb=1024", "-timeout=10", *options, corpus], TARGETS[name])
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
