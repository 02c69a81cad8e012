"""rocetap demo: the whole chain on a generated capture."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from rocetap.cli.common import one_line_errors
from rocetap.cli.output import frame_line, note, print_tables
from rocetap.cli.progress import shown_progress
from rocetap.errors import RocetapError
from rocetap.spec.classes import FrameClass
from rocetap.wording import counted

__all__ = ["demo"]


def demo(
    keep: Annotated[Path | None, typer.Option(
        help="Keep capture, PKI and store in this new folder.")] = None,
) -> None:
    """Run a probe, an exporting daemon and a collector on this machine and print what they find.

    A capture is generated (IPv4 and IPv6, VLAN tags, gaps, repeats, late packets, a READ, PFC
    frames) and played into the simulated board. The first run builds the board, which takes a
    few minutes; later runs start in seconds.

    Examples:

      rocetap demo

      rocetap demo --keep demo-files
    """
    from rocetap.demo import run_demo

    logging.getLogger("rocetap").setLevel(logging.ERROR)
    with _folder(keep) as folder, one_line_errors():
        with shown_progress() as progress:
            result = run_demo(folder, note, progress)
        print_tables(result.sequence, result.pfc)
    note(f"{counted(result.offered, 'frame')} offered; the board classified "
         f"{frame_line(result.frames)}")
    eligible = result.frames[FrameClass.ELIGIBLE_REQUEST]
    requests = sum(row.get("requestPacketTotalCount", 0) for row in result.sequence)
    note(f"{requests} of {counted(eligible, 'eligible request')} stand in the epochs"
         + "; the others came to a connection that a READ had disabled" * (requests < eligible))
    note(result.summary)
    if keep is not None:
        note(f"files are in {keep}: sample.pcap, pki, flows.db")
    note(f"on your own capture: {_command()} replay FILE --window 64")


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="rocetap-demo-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(parents=True)
    except FileExistsError:
        raise RocetapError(f"{keep} exists: give a new folder") from None
    except OSError as error:
        raise RocetapError(f"cannot make the folder {keep}: {error.strerror}") from None
    yield keep


def _command() -> str:
    """How this program was called, in a form that can be copied."""
    called = Path(sys.argv[0])
    if called.name != "rocetap":
        return "rocetap"
    on_path = any(Path(entry) == called.parent for entry in os.environ.get("PATH", "").split(":"))
    return "rocetap" if on_path else shlex.quote(os.path.relpath(called))
