"""Documents that must be true: the README's commands, the metrics table, the deployment files."""

import json
import re
import shlex
from pathlib import Path
from typing import get_args, get_type_hints

import click
import pytest
import yaml
from click.testing import CliRunner

from streams import metrics
from streams.broker.topics import AGENTS
from streams.cli import COMMANDS, crisis
from streams.config import Settings
from streams.metrics import HEALTH_LEVELS
from streams.view.health import Health
from tests.chaos.machines import KEEPS
from tests.chaos.table import rows, short_rows

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = sorted({c.strip() for c in re.findall(r"^\$ (crisis [^#\n]+)", README, re.M)})


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The (sub)command these words name, and its arguments."""
    command: click.Command = crisis
    while words and hasattr(command, "get_command"):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, words
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize("line", SHOWN)
def test_every_command_in_the_readme_exists_with_these_options(line):
    command, arguments = command_of(shlex.split(line)[1:])
    known = {o for p in command.params for o in [*p.opts, *p.secondary_opts]}
    assert {a for a in arguments if a.startswith("--")} <= known


def test_the_readme_shows_commands():
    assert len(SHOWN) > 8


def test_the_readmes_lines_of_python_print_what_it_says(capsys):
    (block,) = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    exec(block, {})
    assert capsys.readouterr().out.startswith("['need.water', 'nothing']\n(2, 437) ")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name):
    done = CliRunner().invoke(crisis, [name, "--help"])
    assert done.exit_code == 0, done.output
    assert len(done.output) > 120


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_every_file_the_guides_name_exists(text):
    names = set(re.findall(r"((?:models|streams|training|deploy|tests)/[\w./-]+\.\w+)", text))
    names = {name for name in names if name.split("/")[-1].split(".")[0] not in ("CATEGORY", "NAME")}
    names |= set(re.findall(r"`((?:models|streams|training|deploy|tests)/[\w./-]+/)`", text))
    names |= set(re.findall(r"\]\(([\w./-]+)\)", text))
    assert names
    assert not [n for n in names if not (ROOT / n).exists()]


def test_the_readme_and_the_page_of_faults_show_the_run_that_is_kept():
    faults = json.loads((ROOT / "deploy/chaos.json").read_text())["faults"]
    assert short_rows(faults) in README
    assert rows(faults) in (ROOT / "deploy/chaos.md").read_text()


def test_the_readme_shows_the_posts_a_second_that_are_kept():
    kept = json.loads((ROOT / "deploy/bench_flow.json").read_text())["metrics"]
    for shape in ("frames", "queries1000", "single"):
        told = [kept[f"e2e.2.{shape}.{who}.told"] for who in ("worker", "workers2", "bare", "bytewax", "quix")]
        cells = [f"{1e6 / clock['median']:,.0f}" for clock in told]
        assert f"| {' | '.join(cells)} |" in README, shape


def test_the_documented_metrics_are_the_metrics():
    assert (ROOT / "deploy" / "METRICS.md").read_text(encoding="utf-8") == metrics.document(), (
        "print it anew: python -m streams.metrics > deploy/METRICS.md"
    )


def test_grafana_and_the_alert_rules_use_metrics_that_exist():
    used = (ROOT / "deploy" / "grafana" / "dashboards" / "crisis-streams.json").read_text()
    used += (ROOT / "deploy" / "alerts.yml").read_text()
    names = {re.sub(r"_(bucket|count|sum)$", "", n) for n in re.findall(r"crisis_[a-z_]+", used)}
    known = set(re.findall(r"`(crisis_[a-z_]+)`", metrics.table()))
    assert names
    assert names <= known


def test_deployment_files_parse_and_compose_runs_commands_that_exist():
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    for path in (ROOT / "deploy").rglob("*.y*ml"):
        yaml.safe_load(path.read_text())
    json.loads((ROOT / "deploy" / "grafana" / "dashboards" / "crisis-streams.json").read_text())
    ours = {n: s for n, s in compose["services"].items() if str(s.get("image", "")).startswith("crisis-streams")}
    assert len(ours) >= 4
    for service in ours.values():
        command_of(list(service["command"]))


def test_what_keeps_a_redis_in_tests_keeps_it_in_compose():
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    for name in ("redis", "vault"):
        assert services[name]["command"][1 : 1 + len(KEEPS)] == list(KEEPS)


# Where the images of others write unless they are told otherwise; Kafka's and our own are told (compose.yaml).
WRITES = {"redis": "/data", "vault": "/data", "prometheus": "/prometheus", "grafana": "/var/lib/grafana"}


def test_every_service_of_others_that_keeps_something_writes_it_into_its_volume():
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    services = {n: s for n, s in compose["services"].items() if not s["image"].startswith("crisis-streams")}
    writes = WRITES | {"kafka": services["kafka"]["environment"].get("KAFKA_LOG_DIRS")}
    assert set(writes) == set(services)
    for name, service in services.items():
        mounted = {where: volume for volume, where, *_ in (v.split(":") for v in service["volumes"])}
        assert mounted.get(writes[name]) in compose["volumes"], f"{name} writes to {writes[name]}"
        told = f"{service.get('command', '')}{service.get('environment', '')}"
        assert not re.search(r"--dir\b|storage\.tsdb|GF_PATHS_DATA", told), f"{name} is told to write elsewhere"


def test_compose_leaves_no_known_password_no_privilege_and_no_redis_without_a_limit():
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    assert services["grafana"]["environment"]["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert {"--maxmemory", "noeviction"} <= set(services["redis"]["command"])
    for name, service in services.items():
        if str(service.get("image", "")).startswith("crisis-streams"):
            assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"], name


def test_every_service_that_loads_the_encoder_gets_the_same_one_and_what_it_runs_on():
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    gpu = yaml.safe_load((ROOT / "deploy" / "compose.gpu.yaml").read_text())["services"]
    flood = yaml.safe_load((ROOT / "deploy" / "compose.flood.yaml").read_text())["services"]
    loading = {n: s for n, s in compose["services"].items() if s.get("command", [""])[0] in ("worker", "dashboard")}
    assert set(flood) == set(loading) and len(loading) == 4
    assert {str(service["environment"]) for service in flood.values()} == {"{'CRISIS_ENCODER__REF': 'flood'}"}
    loading = {name: service for name, service in loading.items() if "profiles" not in service}
    assert set(gpu) == set(loading)
    for name, service in loading.items():
        assert (
            service["build"]["args"]["EXTRAS"] == "${CRISIS_EXTRAS:-}"
            and "CRISIS_ENCODER__REF" in service["environment"]
        )
        assert gpu[name]["build"]["args"]["EXTRAS"] == "torch" and gpu[name]["image"] != service["image"]
        assert gpu[name]["environment"] == gpu["worker"]["environment"]
    (device,) = gpu["worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"]


def scraped(job: str) -> dict:
    """Where Prometheus asks for it."""
    jobs = {
        j["job_name"]: j for j in yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text())["scrape_configs"]
    }
    (where,) = jobs[job]["dns_sd_configs"]
    return where


RULES = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}


def test_an_alarm_rings_for_each_level_of_health_but_live_and_where_nobody_tells_it():
    levels = [re.findall(r'crisis_health\{level="(\w+)"\} == 1', rule["expr"]) for rule in RULES.values()]
    assert sorted(sum(levels, [])) == sorted(set(HEALTH_LEVELS) - {"live"})
    assert HEALTH_LEVELS == get_args(get_type_hints(Health)["level"])
    assert "absent(crisis_health)" in {rule["expr"] for rule in RULES.values()}
    assert scraped("crisis-dashboard") == {"names": ["dashboard"], "type": "A", "port": Settings().dashboard.port}


def test_the_runbook_says_what_to_do_about_every_alarm():
    runbook = (ROOT / "deploy" / "runbook.md").read_text(encoding="utf-8")
    assert len(RULES) > 8 and not [name for name in RULES if f"`{name}`" not in runbook]


def test_few_clusters_ring_no_alarm_for_the_share_of_the_biggest():
    """Of ten clusters or fewer the biggest has a tenth of the posts by arithmetic."""
    assert RULES["CrisisOneBigCluster"]["expr"].endswith("> 0.1 and max(crisis_clusters) > 50")


def test_with_flood_each_agent_of_compose_runs_in_one_process_that_prometheus_asks():
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    changed = yaml.safe_load((ROOT / "deploy" / "compose.flood.yaml").read_text())["services"]
    merged = {name: service | changed.get(name, {}) for name, service in services.items()}
    workers = {name: s for name, s in merged.items() if list(s.get("command", []))[:1] == ["worker"]}
    named = [agent for service in workers.values() for agent in service["command"][2].split(",")]
    assert sorted(named) == sorted(AGENTS)
    assert all(
        service["command"][1] == "--agents" and service["deploy"]["replicas"] == 1 for service in workers.values()
    )
    assert set(scraped("crisis-worker")["names"]) == set(workers)


def test_a_source_in_compose_starts_alone_and_keeps_its_cursor_in_a_volume_of_its_user():
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
    sources = {n: s for n, s in compose["services"].items() if list(s.get("command", []))[:1] == ["ingest"]}
    assert len(sources) >= 2 and len({str(s["profiles"]) for s in sources.values()}) == len(sources)
    folders = re.findall(r"install -d -o crisis -g crisis (\S+)", (ROOT / "deploy" / "Dockerfile").read_text())
    for service in sources.values():
        command = list(service["command"])
        if "--cursor" in command:
            folder = str(Path(command[command.index("--cursor") + 1]).parent)
            assert folder in folders
            (volume,) = (v.split(":")[0] for v in service["volumes"] if v.split(":")[1] == folder)
            assert volume in compose["volumes"]


def test_every_attack_of_the_security_guide_is_a_test_that_exists():
    guide = (ROOT / "deploy" / "security.md").read_text(encoding="utf-8")
    assert [int(n) for n in re.findall(r"^\| (\d+) \|", guide, re.M)] == list(range(1, 23))
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", guide)
    assert len(named) >= 18
    assert not [(file, name) for file, name in named if f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8")]
