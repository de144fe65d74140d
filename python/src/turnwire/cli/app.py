"""The command line's frame: options that every command has, running a command, and turning failures into exit codes."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Concatenate, Final, NoReturn, ParamSpec, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import Abort, TyperException

from turnwire import __version__, errors, faults
from turnwire.calls.service import Service
from turnwire.cli.output import EXIT_CODES, PROGRAM, ExitCode, Output, error_line, exit_code, explain
from turnwire.cli.source import Source
from turnwire.cli.usage import Usage

P = ParamSpec("P")

_PANEL: Final = "Every command"

Db = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="The store: a file. Else $TURNWIRE_DB, else $XDG_DATA_HOME/turnwire/turnwire.db.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT|unix:PATH",
        help="A server, in place of a file. Else $TURNWIRE_SERVER.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Write JSON for scripts: canonical ProtoJSON, one object a line.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"{PROGRAM} {__version__}\n")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", help="Show the version and leave.", show_default=False, is_eager=True, callback=_version),
]

# A blank line in an epilog is a line break.
_EPILOG: Final = "\n\n".join(
    ["[bold]Exit codes[/]", *(f"[bold]{code.value:>3}[/]  {told}" for code, told in EXIT_CODES.items())]
)


_HELP: Final = """Store, replay and resume sessions of AI agents.

Sessions are in a file (--db) or behind a server (--server). Without these options TURNWIRE_DB or TURNWIRE_SERVER tells;
it is an error if both are set. The answer goes to stdout, everything else to stderr."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the options of every command say, gathered from before and after the command's name."""

    db: str | None = None
    server: str | None = None
    json: bool = False

    def over(self, db: str | None, server: str | None, json: bool) -> Shared:
        """The same with what was given nearer to the command. Raises `Usage` for two different values."""
        for option, far, near in (("--db", self.db, db), ("--server", self.server, server)):
            if far is not None and near is not None and far != near:
                raise Usage(f"{option} is given twice, with different values")
        return replace(
            self,
            db=self.db if db is None else db,
            server=self.server if server is None else server,
            json=self.json or json,
        )


@dataclass(frozen=True, slots=True)
class Call:
    """One run of a command: where the sessions are, where the answer goes, and typer's context."""

    source: Source
    out: Output
    context: typer.Context

    def client(self, *, create: bool = False) -> AbstractAsyncContextManager[Service]:
        """The sessions. ``create``: the command writes new ones, so that a file may be made for them."""
        return self.source.open(create=create)


class Root(TyperGroup):
    """The program: writes one line for a failure, and leaves with its exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            return TyperGroup.main(self, args, PROGRAM, complete_var, False, windows_expand_args, **extra)

        return _leave(_guarded(run)) if standalone_mode else run()


def application() -> typer.Typer:
    """An empty program, to which commands are added."""
    app = typer.Typer(
        name=PROGRAM,
        cls=Root,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        epilog=_EPILOG,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(help=_HELP)
    def root(
        context: typer.Context, db: Db = None, server: Server = None, json: Json = False, version: Version = False
    ) -> None:
        context.obj = Shared(db, server, json)

    return app


def group(app: typer.Typer, name: str, help: str) -> typer.Typer:
    """A group of commands within a program."""
    commands = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

    @commands.callback()
    def inner(context: typer.Context, db: Db = None, server: Server = None, json: Json = False) -> None:
        context.obj = _shared(context).over(db, server, json)

    app.add_typer(commands, name=name, help=help)
    return commands


def command(
    app: typer.Typer, name: str, *, cls: type[TyperCommand] | None = None
) -> Callable[[Callable[Concatenate[Call, P], Awaitable[ExitCode | None]]], None]:
    """Add a command to a program: an async function of a `Call` and the command's own parameters.

    It gets the options of every command, and what it raises becomes an error line and an exit code.
    """

    def register(body: Callable[Concatenate[Call, P], Awaitable[ExitCode | None]]) -> None:
        def run(
            context: typer.Context, db: Db, server: Server, json: Json, *args: P.args, **kwargs: P.kwargs
        ) -> ExitCode:
            shared = _shared(context).over(db, server, json)
            call = Call(Source.chosen(shared.db, shared.server, os.environ), Output(json=shared.json), context)

            async def awaited() -> ExitCode | None:
                return await body(call, *args, **kwargs)

            try:
                code = asyncio.run(awaited())
                call.out.close()
            except BrokenPipeError:  # typer would make an exit code of its own of it
                return ExitCode.BROKEN_PIPE
            return code or ExitCode.OK

        # typer reads a command's options off its signature.
        own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        outer = inspect.signature(run, eval_str=True).parameters
        shared_options = [
            outer[name].replace(kind=inspect.Parameter.KEYWORD_ONLY, default=False if name == "json" else None)
            for name in ("db", "server", "json")
        ]
        for each in own:
            _refuse_empty_paths(each.annotation)
        parameters = [outer["context"], *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own)]
        run.__dict__["__signature__"] = inspect.Signature([*parameters, *shared_options])
        run.__annotations__ = {each.name: each.annotation for each in [*parameters, *shared_options]}
        run.__doc__ = _reflowed(body.__doc__ or "")
        app.command(name, cls=cls)(run)

    return register


@contextmanager
def interruptible() -> Generator[None]:
    """Let an interrupt break off what blocks inside, such as a question; else it would wait for the event loop."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _refuse_empty_paths(annotation: Any) -> None:
    """Have an option or argument that takes paths refuse the empty one, of which `Path` would make this directory."""
    of, *infos = get_args(annotation) or (annotation,)
    if Path in (of, *get_args(of), *(inner for each in get_args(of) for inner in get_args(each))):
        for info in infos:
            info.parser = _path


def _path(text: str) -> Path:
    if not text:
        raise typer.BadParameter("an empty text is no path")
    return Path(text)


def _reflowed(text: str) -> str:
    """A docstring with each paragraph in one line, for a help that is wrapped to the terminal."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _shared(context: typer.Context) -> Shared:
    shared = context.obj
    return shared if isinstance(shared, Shared) else Shared()


def _guarded(run: Callable[[], Any]) -> int:
    """Run the program, and say in one line on stderr why it failed, if it did. Returns the exit code."""
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        return ExitCode.BROKEN_PIPE
    except (KeyboardInterrupt, Abort):
        return ExitCode.INTERRUPTED
    except TyperException as error:
        return _wrong_usage(error)
    except Usage as error:
        error_line(str(error))
    except errors.TurnwireError as error:
        error_line(explain(error))
        return exit_code(error)
    except UnicodeEncodeError:
        error_line("an argument is no valid text in this machine's encoding")
    except OSError as error:
        where = f": {error.filename}" if error.filename is not None else ""
        error_line(f"{error.strerror or error}{where}")
    except Exception as error:
        if faults.shown():
            raise
        error_line(faults.told(error))
    else:
        return code if isinstance(code, int) else ExitCode.OK
    return ExitCode.USAGE


def _wrong_usage(error: TyperException) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        return ExitCode.USAGE  # the help has been shown
    hint = f" ({context.command_path} --help tells more)" if context is not None else ""
    error_line(f"{error.format_message()}{hint}")
    return ExitCode.USAGE


def _leave(code: int) -> NoReturn:
    if code == ExitCode.BROKEN_PIPE:
        # What is still in the buffer has no reader; let the interpreter write it nowhere when it ends.
        with suppress(OSError, ValueError):  # stdout is no file
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(int(code))
