"""``txbatch run``: runs a topology, on Spark."""

from __future__ import annotations

from typing import Annotated

import typer

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
    Traces,
    WaveTarget,
    command_errors,
)
from coordinator.cli.run_arguments import RunArguments, adopt_option
from coordinator.cli.run_command import MetricsAddress, RunRequest, execute
from coordinator.cli.signals import STOP_TIMEOUT_S
from coordinator.cli.streams.log_style import LogStyle
from coordinator.server_choice import choose_server
from coordinator.telemetry.metrics_server import DEFAULT_HOST
from coordinator.transactional.options import RunOptions

DEFAULTS = RunOptions()
WAVE_TARGET_MS = round(1000 * DEFAULTS.wave_target_s)

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=RunArguments)
def run(
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
