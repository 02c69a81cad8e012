"""rocetap discover: the request streams of a capture, as a provisioning file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from rocetap.capture import discovery
from rocetap.capture.frames import FrameBatch
from rocetap.capture.reading import open_capture
from rocetap.files import refuse_existing, refuse_input, write_whole
from rocetap.provisioning import Connection, Provisioning, connection_text, provisioning_text
from rocetap.wording import counted

__all__ = ["discover", "discovery_text"]

_INTERRUPTED = 130
"""128 and SIGINT's number, as shells have it."""


def discover(
    capture: Annotated[str, typer.Argument(
        help="A pcap or pcapng file, plain or in gzip, bzip2 or xz; - is standard input.")],
    window: Annotated[int, typer.Option(
        help="History width W of each connection, 1 to 4194304 PSN positions.")] = 64,
    output: Annotated[Path | None, typer.Option(
        help="The file to write; without it the text goes to standard output.")] = None,
    force: Annotated[bool, typer.Option(
        "--force", help="Replace --output when it exists: it may have been edited.")] = False,
) -> None:
    """Find every RC request stream in a capture and write a provisioning file (TOML).

    Connections with operations outside the profile, such as READ, are written as comments with
    the reason beside them: the profile must not be enabled for them.

    A file that stops in the middle of a record is read up to there; the exit code is then 3.
    Ctrl-C ends the reading of a pipe; what was found is written, and the exit code is 130.

    Examples:

      rocetap discover trace.pcap --window 128 --output provisioning.toml

      tcpdump -i eth0 -w - udp port 4791 | rocetap discover -
    """
    if output is not None:
        refuse_input("--output", output, "the capture that is read", Path(capture))
        refuse_existing("--output", output, force=force)
    interrupted: list[bool] = []
    with open_capture(capture) as opened:
        found = discovery.discover(_until_interrupted(opened.batches(), interrupted))
        text = discovery_text(found, window)
        for line in opened.warnings:
            print(line, file=sys.stderr)
        if output is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_whole(output, text)
        print(_line(opened.name, found), file=sys.stderr)
        if opened.truncation is not None:
            raise opened.truncation
    if interrupted:
        raise typer.Exit(_INTERRUPTED)


def _until_interrupted(batches: Iterator[FrameBatch], interrupted: list[bool]
                       ) -> Iterator[FrameBatch]:
    """Ends at Ctrl-C while the next batch is awaited, and notes it."""
    try:
        yield from batches
    except KeyboardInterrupt:
        interrupted.append(True)


def discovery_text(found: discovery.Discovery, window: int) -> str:
    """The provisioning file; streams with operations outside the profile are commented out."""
    whole = found.provisioning(window)
    parts = [provisioning_text(Provisioning(whole.observation_domain, whole.observation_point,
                                            whole.ports, []))]
    for stream, connection in zip(found.streams, whole.connections, strict=True):
        parts.append(_entry(stream, connection))
    return "\n".join(parts)


def _entry(stream: discovery.Stream, connection: Connection) -> str:
    text = (f"# {counted(stream.requests, 'SEND and WRITE packet')}\n"
            + connection_text(connection))
    if not stream.outside:
        return text
    seen = ", ".join(f"{count} of {discovery.opcode_name(code)}"
                     for code, count in stream.outside.items())
    commented = "".join(f"# {line}\n" for line in text.removeprefix("# ").splitlines())
    return f"# Left out, as it is outside the profile: {seen}\n{commented}"


def _line(name: str, found: discovery.Discovery) -> str:
    outside = sum(1 for stream in found.streams if stream.outside)
    return (f"{name}: {counted(found.frames, 'frame')}, "
            f"{counted(found.roce_packets, 'RoCEv2 packet')}, "
            f"{counted(len(found.streams), 'request stream')}, {outside} of them outside the "
            "profile")
