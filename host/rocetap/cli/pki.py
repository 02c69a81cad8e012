"""rocetap pki: a development PKI in a folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["pki"]

pki = typer.Typer(help="""Make a development PKI: an authority, and certificates for both sides
of the export session.

The authority's private key lies unencrypted in the folder: use it for trials, not in production.

Examples:

  rocetap pki init --dir pki --exporter probe-1 --collector collector.example

  rocetap pki issue --dir pki --name probe-2 --days 30
""", no_args_is_help=True, rich_markup_mode=None)

_Directory = Annotated[Path, typer.Option("--dir", help="Folder of the PKI.")]
_Days = Annotated[int, typer.Option(
    help="Validity from now; with 0 or fewer the certificate has expired already.")]
_Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


@pki.command()
def init(
    directory: _Directory,
    exporter: Annotated[str, typer.Option(help="Name of the exporter: a DNS name or address.")],
    collector: Annotated[str, typer.Option(
        help="Name of the collector; its certificate is also good for localhost.")],
    days: _Days = 365,
    force: _Force = False,
) -> None:
    """Write ca.pem, ca.key, exporter.pem, exporter.key, collector.pem and collector.key.

    Example:

      rocetap pki init --dir pki --exporter probe-1 --collector collector.example
    """
    from rocetap import pki as authority

    _tell(authority.init(directory, exporter, collector, days=days, force=force))
    print("This is a development PKI: its authority's key is not encrypted.", file=sys.stderr)


@pki.command()
def issue(
    directory: _Directory,
    name: Annotated[str, typer.Option(help="A DNS name or address, and the name of the files.")],
    days: _Days = 365,
    force: _Force = False,
) -> None:
    """Write NAME.pem and NAME.key, issued by the folder's authority.

    Example:

      rocetap pki issue --dir pki --name probe-2 --days 30
    """
    from rocetap import pki as authority

    _tell(authority.issue(directory, name, days=days, force=force))


def _tell(written: list[Path]) -> None:
    for path in written:
        print(path)
