"""The files in deploy/ are sound as far as that shows without an engine, and agree with what a run does."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from coordinator.operating.cli.app import app
from coordinator.operating.cli.exits import ExitCode
from coordinator.operating.cli.signals import STOP_TIMEOUT_S
from coordinator.watching.telemetry.health import TURN_MAX_S
from state.redis_owner.reader import URL_VARIABLE
from tests.support.telemetry.metric_names import queried_names
from tests.support.telemetry.prometheus import program

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "txbatch@.service"
METRIC = re.compile(r"\b(?:txbatch|process)_\w+")
OF_THE_CLIENT = {"process_start_time_seconds", "process_resident_memory_bytes"}


def manifest(name: str) -> dict[str, Any]:
    (document,) = yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def dashboard() -> dict[str, Any]:
    found = json.loads((DEPLOY / "grafana" / "txbatch.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def run_options() -> set[str]:
    """Every option of ``txbatch run``."""
    return {name for parameter in get_command(app).commands["run"].params for name in parameter.opts}  # type: ignore[attr-defined]


def options_in(arguments: list[str]) -> set[str]:
    return {argument.partition("=")[0] for argument in arguments if argument.startswith("-")}


# Metrics


def test_the_dashboard_asks_only_for_metrics_that_exist():
    names = {
        name
        for panel in dashboard()["panels"]
        for target in panel["targets"]
        for name in METRIC.findall(target["expr"])
    }
    assert len(names) > 15
    assert names <= queried_names() | OF_THE_CLIENT


def test_alerts_ask_only_for_metrics_that_exist():
    names = {name for rule in rules() for name in METRIC.findall(rule["expr"])}
    assert len(names) > 5
    assert names <= queried_names() | OF_THE_CLIENT


def test_every_alert_says_what_happened_and_how_bad_it_is():
    for rule in rules():
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert len({rule["alert"] for rule in rules()}) == len(rules())


def test_promtool_accepts_the_rules_and_the_scrape_configuration():
    promtool = program("promtool")
    for what, name in (("rules", "alerts.yml"), ("config", "prometheus.yml")):
        checked = subprocess.run(
            [promtool, "check", what, str(DEPLOY / "prometheus" / name)], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_fire_for_what_they_are_meant_for_and_not_before(tmp_path):
    topology = 'topology="lines", job="txbatch", instance="a:1"'
    tests = {
        "rule_files": [str(DEPLOY / "prometheus" / "alerts.yml")],
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": f"txbatch_commit_lag_seconds{{{topology}}}", "values": "0x5 310x10"},
                    {"series": f"txbatch_attempts_total{{{topology}}}", "values": "0+100x15"},
                    {"series": f'txbatch_failed_attempts_total{{{topology}, reason="asked_for"}}', "values": "0+1x15"},
                    {
                        "series": f'txbatch_failed_attempts_total{{{topology}, reason="lower_failed"}}',
                        "values": "0+50x15",
                    },
                ],
                "alert_rule_test": [
                    {"eval_time": "5m", "alertname": "TxbatchNotCommitting", "exp_alerts": []},
                    {
                        "eval_time": "8m",
                        "alertname": "TxbatchNotCommitting",
                        "exp_alerts": [
                            {
                                "exp_labels": {
                                    "severity": "critical",
                                    "topology": "lines",
                                    "job": "txbatch",
                                    "instance": "a:1",
                                },
                                "exp_annotations": _annotations("TxbatchNotCommitting", "lines"),
                            }
                        ],
                    },
                    {"eval_time": "14m", "alertname": "TxbatchReplays", "exp_alerts": []},
                ],
            }
        ],
    }
    (tmp_path / "tests.yml").write_text(json.dumps(tests), encoding="utf-8")
    tested = subprocess.run(
        [program("promtool"), "test", "rules", str(tmp_path / "tests.yml")], capture_output=True, text=True, check=False
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


def _annotations(alert: str, topology: str) -> dict[str, str]:
    (rule,) = [rule for rule in rules() if rule["alert"] == alert]
    return {name: text.replace("{{ $labels.topology }}", topology) for name, text in rule["annotations"].items()}


def test_a_run_is_called_stalled_only_after_its_probe_has_failed():
    (rule,) = [rule for rule in rules() if rule["alert"] == "TxbatchStalled"]
    assert float(rule["expr"].rpartition("> ")[2]) > TURN_MAX_S


def test_panels_have_ids_of_their_own_and_lie_side_by_side():
    found = dashboard()
    panels = found["panels"]
    assert max(Counter(panel["id"] for panel in panels).values()) == 1
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    assert {variable["name"] for variable in found["templating"]["list"]} == {"datasource", "topology"}
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


# systemd


def unit() -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return {name: dict(parser[name]) for name in parser.sections()}


def test_systemd_accepts_the_unit(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is missing")
    text = UNIT.read_text(encoding="utf-8").replace("/opt/txbatch/bin/txbatch", shutil.which("true") or "/bin/true")
    here = tmp_path / UNIT.name
    here.write_text(text, encoding="utf-8")
    checked = subprocess.run([analyze, "verify", str(here)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_unit_lets_a_run_commit_and_does_not_restart_a_fenced_one():
    service = unit()["Service"]
    assert float(service["TimeoutStopSec"]) > STOP_TIMEOUT_S
    assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")
    assert service["RestartPreventExitStatus"].split() == [str(int(ExitCode.USAGE)), str(int(ExitCode.FENCED))]
    assert options_in(service["ExecStart"].split()) <= run_options()


# Containers


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, with their continued lines."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Containerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line.strip())]


def test_the_image_is_built_in_two_stages_and_runs_as_nobody_special():
    found = instructions()
    stages = [rest for word, rest in found if word == "FROM"]
    assert [" AS " in stage for stage in stages] == [True, False]
    words = [word for word, _ in found]
    assert set(words) <= {
        "FROM",
        "ARG",
        "WORKDIR",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "EXPOSE",
        "STOPSIGNAL",
        "ENTRYPOINT",
        "CMD",
    }
    last_stage = dict(found[len(words) - 1 - words[::-1].index("FROM") :])
    assert last_stage["USER"] == "10001:10001"
    assert last_stage["STOPSIGNAL"] == "SIGTERM"
    assert json.loads(last_stage["ENTRYPOINT"]) == ["tini", "--", "txbatch"]  # the exec form: no shell eats the signal
    assert "openjdk-17-jre-headless" in last_stage["RUN"]


def test_what_the_image_copies_and_installs_is_there():
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and "--from" not in rest]
    assert copied
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []
    extras = dict(rest.split("=", 1) for word, rest in instructions() if word == "ARG")["EXTRAS"].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras) <= set(project["optional-dependencies"])
    packages = {"state", "coordinated_bolt", "committers", "coordinator"}
    assert packages <= {name for names in copied for name in names}


# Kubernetes


@pytest.mark.parametrize("name", ["deployment.yaml", "job.yaml"])
def test_a_pod_has_the_time_the_rights_and_the_secret_it_needs(name):
    found = manifest(name)
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert found["apiVersion"] == {"Deployment": "apps/v1", "Job": "batch/v1"}[found["kind"]]
    assert pod["terminationGracePeriodSeconds"] > STOP_TIMEOUT_S
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert {"requests", "limits"} == set(container["resources"])
    environment = {entry["name"]: entry for entry in container["env"]}
    assert "secretKeyRef" in environment[URL_VARIABLE]["valueFrom"]
    assert container["args"][0] == "run"
    assert options_in(container["args"][1:]) <= run_options()
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_a_deployment_never_has_two_pods_and_is_probed_where_the_run_answers():
    spec = manifest("deployment.yaml")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    (port,) = container["ports"]
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    assert f"--metrics-port={port['containerPort']}" in container["args"]
    assert spec["template"]["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"])


def test_a_job_is_not_repeated_after_wrong_usage_or_a_newer_owner():
    spec = manifest("job.yaml")["spec"]
    rule = spec["podFailurePolicy"]["rules"][0]
    assert rule["action"] == "FailJob"
    assert rule["onExitCodes"]["values"] == [ExitCode.USAGE, ExitCode.FENCED]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
