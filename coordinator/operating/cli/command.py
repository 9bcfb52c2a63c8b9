"""Makes a command of a function: its option values become options, and its errors sentences and exit codes."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, redirect_stderr
from dataclasses import is_dataclass
from functools import partial
from inspect import Parameter
from typing import Any, get_type_hints

import typer

from coordinator.operating.cli.command_options import Debug, LogOptions, ServerOptions
from coordinator.operating.cli.exits import errors_reported
from coordinator.operating.cli.logs import RecordStream, log_error, logging_to_stderr
from coordinator.watching.log_fields import logs_of
from state.redis_client.address import secrets_in
from state.redis_topology.reader import URL_VARIABLE

ServesTyper = Callable[..., None]


def command(body: Callable[..., int | None]) -> ServesTyper:
    """Returns what typer is given: a function of all options, which reports what `body` raises and exits with its code.

    Args:
        body: does the work; its parameters are keyword-only. One whose type is a dataclass, such as `ServerOptions`,
            stands for an option of each of its fields. What it returns, None for 0, is the exit code. Every command
            has ``--debug`` in addition.
    """
    values: dict[str, type] = {}
    parameters: list[Parameter] = []
    hints = get_type_hints(body, include_extras=True)
    for each in inspect.signature(body).parameters.values():
        hint = hints[each.name]
        if is_dataclass(hint):
            assert isinstance(hint, type)
            values[each.name] = hint
            parameters += _options_of(hint)
        else:
            parameters.append(each.replace(annotation=hint))
    parameters.append(Parameter("debug", Parameter.KEYWORD_ONLY, default=False, annotation=Debug))

    @functools.wraps(body)
    def run(*, debug: bool, **given: Any) -> None:
        for name, kind in values.items():
            given[name] = kind(**{option.name: given.pop(option.name) for option in _options_of(kind)})
        server = next((value for value in given.values() if isinstance(value, ServerOptions)), None)
        log = next((value for value in given.values() if isinstance(value, LogOptions)), None)
        with command_errors(debug=debug, server=server, log=log):
            code = body(**given)
        if code is not None:
            raise typer.Exit(code)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # for typer, which reads both
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options_of(kind: type) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [each.replace(annotation=hints[each.name]) for each in inspect.signature(kind).parameters.values()]


@contextmanager
def command_errors(
    *, debug: bool = False, server: ServerOptions | None = None, log: LogOptions | None = None
) -> Iterator[None]:
    """Wraps every command: prints what it logs and raises in the command's own form, without the password.

    If log options are given, all of it is log records.
    """
    server = server or ServerOptions()
    hidden = secrets_in(server.redis or os.environ.get(URL_VARIABLE, ""))
    styled: dict[str, Any] = {}
    if log is not None and log.is_given:
        styled = {"form": log.formatter(hidden), "level": log.lowest_level()}
    with (
        logs_of(None) as subject,
        logging_to_stderr(debug=debug, hidden=hidden, **styled),
        closing(RecordStream(subject)) if styled else nullcontext() as printed,
        nullcontext() if printed is None else redirect_stderr(printed),
        errors_reported(
            debug=debug,
            hidden=hidden,
            completed=server.completed,
            report=partial(log_error, debug=debug) if styled else None,
        ),
    ):
        yield


def command_group(summary: str) -> typer.Typer:
    """Returns an application of several commands, such as ``txbatch state``."""
    return typer.Typer(help=summary, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
