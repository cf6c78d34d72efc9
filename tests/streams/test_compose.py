"""What is run with Docker, and what the runbook says of it."""

import re
from pathlib import Path

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
RUNBOOK = (DEPLOY / "runbook.md").read_text(encoding="utf-8")


def test_the_log_of_every_container_has_a_bound():
    files = sorted(DEPLOY.glob("compose*.yaml"))
    services = {
        (file.name, name): service
        for file in files
        for name, service in yaml.safe_load(file.read_text(encoding="utf-8"))["services"].items()
        if file.name == "compose.yaml" or "image" in service and "build" not in service
    }
    assert len(files) > 2 and len(services) > 10
    unbounded = [name for name, service in services.items() if "max-size" not in service["logging"]["options"]]
    assert not unbounded


def test_each_command_of_the_runbook_names_what_it_works_on():
    composed, administered = re.findall(r"`docker compose [^`]*", RUNBOOK), re.findall(r"`kafka-[^`]*", RUNBOOK)
    assert len(composed) > 5 and administered
    assert not [line for line in composed if "-f deploy/compose.yaml" not in line]
    assert not [line for line in administered if "--bootstrap-server" not in line]
