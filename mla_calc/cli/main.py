"""The command line: finds the command, and turns every wrong input into one or two lines and exit code 2.

A command's module is imported when the command runs, not before: that is most of the start-up time.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import InputError, nearest, shown
from .as_typed import take_as_typed
from .options import CONTEXT

COMMANDS = (
    "cache",
    "flops",
    "intensity",
    "roofline",
    "crossover",
    "workspace",
    "dispatch",
    "backends",
    "trace",
    "parity",
    "capacity",
    "sweep",
    "presets",
    "validate",
    "explore",
    "report",
)
"""In the order that help lists them; each is a module beside this one with an ``app``."""

WRONG_INPUT = 2
MAX_MESSAGE = 500

# the exception behind every usage error, wherever typer keeps its click
ClickException: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


class ReaderLeftError(Exception):
    """Who read the output has closed it: by another name, since typer ends on a BrokenPipeError with exit code 1."""


class Commands(TyperGroup):
    """The group of all commands, each loaded on first use."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises ReaderLeftError where nobody reads what it writes."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderLeftError from None

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Names of the commands, in the order of :data:`COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """The command of that name, or ``None``."""
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(f".{cmd_name}", __package__).app)
        command.name = cmd_name
        return take_as_typed(command)


app = typer.Typer(
    cls=Commands,
    name="mla-calc",
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def _print_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:  # completion looks at the line alone
        from .. import __version__

        typer.echo(f"mla-calc {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
]


@app.callback()
def callback(version: Version = False) -> None:
    """What Multi-head Latent Attention costs: cache bytes, FLOPs, rooflines, crossovers.

    Model, GPU and engine presets feed an exact cost engine. Try: mla-calc cache --model dsv3
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 fine, 1 a check did not hold, 2 the input is wrong."""
    for name in ("SIGTERM", "SIGHUP"):
        # as an exit, so that a file that is half written is removed on the way out
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code is returned, errors are printed to stderr."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (it stands for stderr until the process ends)
    if sys.stdout is None:
        return _fail("stdout is closed: there is nowhere to answer", None)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 still gets its answer
    command = take_as_typed(typer.main.get_command(app))
    if arguments is None:
        arguments = sys.argv[1:]
    try:
        code = command.main(args=arguments or ["--help"], prog_name="mla-calc", standalone_mode=False)
        sys.stdout.flush()
    except InputError as error:
        return _fail(str(error), error.hint)
    except ClickException as error:
        return _usage(error, arguments)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except (BrokenPipeError, ReaderLeftError):
        # the reader left (`| head`): nothing more to say, and nothing to flush at exit
        _discard_stdout()
        return 0
    except OSError as error:
        # stdout is on a full disk or device; what is left of it must not be flushed at exit again
        _discard_stdout()
        return _fail(f"the answer cannot be written: {error.strerror or error}", None)
    return code if isinstance(code, int) else 0


def _discard_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: Any, arguments: list[str]) -> int:
    """A usage error of the option parser, in our form and with the nearest name where it is a name."""
    message = " ".join(error.format_message().split()).replace("Value error, ", "")  # pydantic's, before our words
    context = getattr(error, "ctx", None)
    # the parser knows no context yet where an option lacks its value
    asked = ["mla-calc", *(name for name in arguments[:1] if name in COMMANDS)]
    where = context.command_path if context else " ".join(asked)
    hint = f"see `{where} --help`"
    if message.startswith("No such command") and where == "mla-calc":
        typed = message.split("'")[1]
        message, hint = f"no command is named {shown(typed)}", nearest(typed, COMMANDS) or hint
    return _fail(message.rstrip("."), hint)


def _fail(message: str, hint: str | None) -> int:
    if len(message) > MAX_MESSAGE:
        message = message[: MAX_MESSAGE - 3] + "..."
    with suppress(OSError):  # stderr may be on a full disk: the exit code is left to say it
        sys.stderr.write(f"mla-calc: {message}\n")
        if hint:
            sys.stderr.write(f"  {hint}\n")
        sys.stderr.flush()
    return WRONG_INPUT
