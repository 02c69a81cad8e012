"""The `rocetap` command. One file a command; a command's imports are made only when it runs."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from rocetap.errors import RocetapError

__all__ = ["COMMANDS", "main", "make_app"]

COMMANDS: Final = {
    "demo": "Push a generated capture through the whole chain and print the results.",
    "replay": "Push a capture file through the simulated board and print what is found.",
    "discover": "Find the request streams of a capture and write a provisioning file.",
    "synth": "Write a synthetic RoCEv2 capture.",
    "export": "Run the exporting daemon between a board and a collector.",
    "collect": "Run the collector: mutual TLS 1.3, validation, SQLite store.",
    "query": "Show what a collector has stored, or write it as an IPFIX File.",
    "load": "Load a board's bitstream and find its serial port.",
    "selftest": "Play known frames inside a board and check its counters.",
    "sim": "Run the simulated board behind socket://HOST:PORT.",
    "verilog": "Write the probe as a Verilog core with AXI pins, for other designs.",
    "pki": "Make a development PKI and certificates.",
    "bench": "Measure speeds on this machine.",
    "doctor": "Say what is installed, what is missing, and what to do.",
}
"""Command -> its line in the help. Function, module and command share the name."""

_HELP: Final = """A probe for RDMA networks: RoCEv2 sequence windows and PFC counters, from gateware
to IPFIX.

Examples:

  rocetap demo

  rocetap replay capture.pcap --window 64 --format jsonl

  rocetap COMMAND --help
"""


_USAGE_ERROR: Final[Any] = typer.BadParameter.__mro__[1]
"""What all wrong uses of a command line are; typer has no public name for it."""
_INTERRUPTED: Final = 130
"""128 and SIGINT's number, as shells have it."""


def _version(asked: bool) -> None:
    if asked:
        print(f"rocetap {importlib.metadata.version('rocetap')}")
        raise typer.Exit


def _options(
    version: Annotated[bool, typer.Option(
        "--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options before any command."""


def _placeholder(line: str) -> Callable[[], None]:
    def command() -> None:
        raise AssertionError("only the command that runs is loaded, and this is another")

    command.__doc__ = line
    return command


def make_app(chosen: str | None) -> typer.Typer:
    """The command line's parser. Only `chosen` is loaded; the others are their help lines, so that
    `rocetap --help` imports nothing of them."""
    app = typer.Typer(help=_HELP, no_args_is_help=True, add_completion=False,
                      pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_options)
    for name, line in COMMANDS.items():
        if name != chosen:
            app.command(name, short_help=line)(_placeholder(line))
            continue
        loaded = getattr(importlib.import_module(f"rocetap.cli.{name}"), name)
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=name, short_help=line)
        else:
            app.command(name, short_help=line)(loaded)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Runs a command and leaves the process with its exit code.

    A RocetapError becomes a line on stderr for each line of its text; a wrong use of the command
    line, and output that cannot be written, become one; anything else that comes this far is a
    fault of this program and keeps its traceback.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    try:
        try:
            code = make_app(chosen)(arguments, prog_name="rocetap", standalone_mode=False)
        finally:
            sys.stdout.flush()
    except _USAGE_ERROR as error:
        print(_usage(error), file=sys.stderr)
        sys.exit(2)
    except typer.Abort:
        print("rocetap: interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except RocetapError as error:
        for line in str(error).splitlines():
            print(f"rocetap: error: {line}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        # What a command opens it checks itself; what is left is its output.
        where = error.filename or "standard output"
        print(f"rocetap: error: cannot write to {where}: {error.strerror or error}; free space "
              "there, or write somewhere else", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)    # or the end of the process tries again
        sys.exit(2)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Any) -> str:
    """What is wrong with the command line, and where to read on; without any argument the help."""
    text = error.format_message().rstrip(".")
    if text.startswith("Usage:"):
        return str(error.format_message())
    text = text.replace("Value error, ", "").replace("Input should be", "must be")
    text = text[:1].lower() + text[1:]
    text = " ".join(text.replace(". Did", "; did").split())
    where = error.ctx.command_path if error.ctx is not None else "rocetap"
    return f"rocetap: error: {text}{' See' if text.endswith('?') else '; see'} {where} --help"
