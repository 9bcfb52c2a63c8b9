"""The commands of ``txbatch`` and their options."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from coordinator.cli.acl_command import show_acl
from coordinator.cli.bench_command import bench as run_bench
from coordinator.cli.command_options import (
    Adopt,
    AllowPlaintext,
    AsJson,
    CommitGroupMax,
    DataDir,
    Debug,
    History,
    Level,
    LogFormatOption,
    LogLevelOption,
    MaxAttempts,
    MaxPending,
    MaxQuarantined,
    MetricsHost,
    MetricsPort,
    OnPoison,
    OtherStates,
    Parameters,
    Pulse,
    Redis,
    Replicas,
    Slots,
    SparkConf,
    SparkMaster,
    StopTimeout,
    StopWhenIdle,
    TopologyId,
    Traces,
    WaveTarget,
    command_errors,
)
from coordinator.cli.commands.dead_letters import dead_letters
from coordinator.cli.commands.doctor import doctor
from coordinator.cli.commands.dry_run import dry_run
from coordinator.cli.commands.explain import explain
from coordinator.cli.commands.init import init
from coordinator.cli.commands.inspect import inspect
from coordinator.cli.commands.list_topologies import list_topologies
from coordinator.cli.commands.plan import plan
from coordinator.cli.commands.prove import prove as run_prove
from coordinator.cli.commands.quarantine import app as quarantine_app
from coordinator.cli.commands.replay import replay
from coordinator.cli.commands.state import app as state_app
from coordinator.cli.commands.status import status
from coordinator.cli.commands.ui import ui
from coordinator.cli.commands.verify import verify
from coordinator.cli.run_arguments import RunArguments, adopt_option
from coordinator.cli.run_command import MetricsAddress, RunRequest, execute
from coordinator.cli.signals import STOP_TIMEOUT_S
from coordinator.cli.state_commands import ask
from coordinator.cli.state_commands import drop as drop_topology
from coordinator.cli.streams.log_style import LogStyle
from coordinator.server_choice import choose_server
from coordinator.telemetry.metrics_server import DEFAULT_HOST
from coordinator.transactional.options import RunOptions
from state.records.durability import DurabilityLevel

DEFAULTS = RunOptions()
WAVE_TARGET_MS = round(1000 * DEFAULTS.wave_target_s)

app = typer.Typer(
    name="txbatch",
    help="Exactly-once batch jobs on PySpark, with their state in Redis.",
    epilog="Exit codes: 0 done · 1 the job failed · 2 wrong usage, or a topology that cannot run correctly · "
    "3 fenced, a newer run took over: do not restart · 4 the state was refused or is unreachable · "
    "5 Spark failed or is gone · "
    "130, 143 stopped by Ctrl-C or SIGTERM before the end of the input: run again to continue.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            print(f"txbatch {version('txbatch')}")
        except PackageNotFoundError:
            print("txbatch, not installed")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options of every command."""


@app.command("run", cls=RunArguments)
def run_topology(
    *,
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE:FACTORY", help="As in visits.topology:topology or word_count.py:topology."),
    ],
    parameters: Parameters = None,
    redis: Redis = None,
    data_dir: DataDir = None,
    allow_plaintext: AllowPlaintext = False,
    master: SparkMaster = "local[*]",
    conf: SparkConf = None,
    max_pending: MaxPending = None,
    wave_target_ms: WaveTarget = WAVE_TARGET_MS,
    slots: Slots = None,
    commit_group_max: CommitGroupMax = DEFAULTS.commit_group_max,
    max_attempts: MaxAttempts = DEFAULTS.max_attempts,
    on_poison: OnPoison = DEFAULTS.on_poison,
    max_quarantined: MaxQuarantined = DEFAULTS.max_quarantined,
    adopt: Adopt = None,
    accept_state_changes: OtherStates = False,
    durability: Level = None,
    durability_replicas: Replicas = DEFAULTS.durability_replicas,
    history: History = DEFAULTS.history,
    pulse: Pulse = True,
    stop_when_idle: StopWhenIdle = False,
    stop_timeout: StopTimeout = STOP_TIMEOUT_S,
    log_format: LogFormatOption = None,
    log_level: LogLevelOption = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = DEFAULT_HOST,
    traces: Traces = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run a topology: a finite input to its end, a continuous one until Ctrl-C or SIGTERM.

    The first signal lets the run commit what is in flight; a second one stops it at once. After SIGTERM the run
    ends within --stop-timeout. However a run ends, the next one continues after the last commit.

    A plain topology runs until Ctrl-C or SIGTERM, or with --stop-when-idle until its spouts are idle. It has no
    state and needs no server.
    """
    with command_errors(debug=debug, redis_url=redis, data_dir=data_dir, log=LogStyle.of(log_format, log_level)):
        server = choose_server(redis, data_dir, allow_plaintext=allow_plaintext)
        options = RunOptions(
            max_spout_pending=max_pending,
            wave_target_s=wave_target_ms / 1000,
            slots=slots,
            commit_group_max=commit_group_max,
            max_attempts=max_attempts,
            on_poison=on_poison,
            max_quarantined=max_quarantined,
            adopt=adopt_option(adopt),
            accept_state_changes=accept_state_changes,
            durability=durability,
            durability_replicas=durability_replicas,
            history=history,
            pulse=pulse,
        )
        request = RunRequest(
            *(target, parameters or (), server, master, conf or (), options, as_json, stop_when_idle, stop_timeout),
            is_logged=(log_format or log_level) is not None,
            metrics=MetricsAddress.of(metrics_port, metrics_host),
            traces=traces,
        )
        code = execute(request)
    raise typer.Exit(code)


@app.command()
def drop(
    *,
    topology_id: TopologyId,
    redis: Redis = None,
    data_dir: DataDir = None,
    allow_plaintext: AllowPlaintext = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    debug: Debug = False,
) -> None:
    """Delete a topology's state and everything txbatch stores about it."""
    with command_errors(debug=debug, redis_url=redis, data_dir=data_dir):
        drop_topology(
            topology_id, choose_server(redis, data_dir, allow_plaintext=allow_plaintext), confirm=None if yes else ask
        )


@app.command()
def acl(
    *,
    topology_id: TopologyId,
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the user.  [default: the topology id]")
    ] = None,
    functions: Annotated[
        bool,
        typer.Option(
            "--functions/--no-functions", help="Whether the user may load the function library, or finds it loaded."
        ),
    ] = True,
    durability: Level = None,
    debug: Debug = False,
) -> None:
    """Print a line for the server's ACL file: a user with the least rights that the topology needs."""
    with command_errors(debug=debug):
        show_acl(topology_id, user, loads_functions=functions, level=durability or DurabilityLevel.MEMORY)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the benchmark of this checkout, with the arguments that follow: --quick, --sides, --help."""
    with command_errors():
        code = run_bench(context.args)
    raise typer.Exit(code)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def prove(context: typer.Context) -> None:
    """Play the simulation of this checkout, with the arguments that follow: --seeds N, --minutes M, --help."""
    with command_errors():
        code = run_prove(context.args)
    raise typer.Exit(code)


app.command()(init)
app.command("list")(list_topologies)
app.command()(status)
app.command()(inspect)
app.command()(ui)
app.command()(replay)
app.command()(doctor)
app.command()(explain)
app.command()(plan)
app.command("dry-run")(dry_run)
app.command()(verify)
app.add_typer(dead_letters, name="dead-letters")
app.add_typer(state_app, name="state")
app.add_typer(quarantine_app, name="quarantine")
