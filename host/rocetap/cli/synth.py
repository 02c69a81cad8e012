"""rocetap synth: writes a synthetic capture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rocetap.capture.synth import SynthSettings, SynthSummary, write_synthetic
from rocetap.capture.traffic import Impairments
from rocetap.wording import counted

__all__ = ["synth"]


def synth(
    out: Annotated[Path, typer.Argument(help="The pcap file to write; it is overwritten.")],
    packets: Annotated[int, typer.Option(help="Frames in the file, all kinds together.")] = 20_000,
    connections: Annotated[int, typer.Option(
        help="Request streams; two neighbours are the two directions of a connection.")] = 8,
    seed: Annotated[int, typer.Option(help="The same seed and options give the same file.")] = 1,
    gap: Annotated[float, typer.Option(
        help="Chance per request that 1 to 8 packets are missing at the tap.")] = 0.002,
    repeat: Annotated[float, typer.Option(
        help="Chance per request that the sender goes back 1 to 16 packets.")] = 0.002,
    late: Annotated[float, typer.Option(
        help="Chance per request that it comes some packets later.")] = 0.002,
    jump: Annotated[float, typer.Option(
        help="Chance per request that the PSN jumps beyond any window.")] = 0.0,
    reads: Annotated[int, typer.Option(
        help="Streams with one READ half-way, which the profile does not cover.")] = 1,
    cnp: Annotated[float, typer.Option(
        help="Congestion notification packets per request.")] = 0.002,
    pfc: Annotated[float, typer.Option(
        help="PFC frames per request, XOFF and XON in turn.")] = 0.002,
    other: Annotated[float, typer.Option(
        help="Frames that are not RoCEv2 per request.")] = 0.01,
    payload: Annotated[str, typer.Option(
        help="Path MTU: small (256), mixed (256, 1024, 2048) or large (4096).")] = "mixed",
    micro: Annotated[bool, typer.Option(
        "--micro", help="Times in microseconds; without it nanoseconds.")] = False,
) -> None:
    """Write a synthetic RoCEv2 capture (pcap): IPv4 and IPv6, VLAN tags, SEND and WRITE messages,
    acknowledgements, congestion notifications, PFC frames, and the impairments asked for.

    Examples:

      rocetap synth sample.pcap

      rocetap synth clean.pcap --gap 0 --repeat 0 --late 0 --reads 0

      rocetap synth big.pcap --packets 500000 --connections 256 --seed 7 --jump 0.0001
    """
    settings = SynthSettings(
        packets=packets, connections=connections, seed=seed,
        impairments=Impairments(gap=gap, repeat=repeat, late=late, jump=jump), reads=reads,
        cnp=cnp, pfc=pfc, other=other, payload=payload)
    print(_line(out, write_synthetic(out, settings, nanoseconds=not micro)), file=sys.stderr)


def _line(out: Path, summary: SynthSummary) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in summary.kinds.most_common())
    done = ", ".join(f"{summary.done[name]} {name}"
                     for name in ("missing", "repeated", "late", "jumps", "reads"))
    return f"{out}: {counted(summary.frames, 'frame')} ({kinds}); put in: {done}"
