"""Apache Kafka's jars, fetched once from Maven Central and kept in `CRISIS_CACHE` (~/.cache/crisis-streams).

`python3 -m tests.services.jars` fetches them and needs nothing but the standard library: .ci/run does so while `make`
installs.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.services.needs import Missing

POM = Path(__file__).with_name("kafka-pom.xml")
FETCH_S = 600.0


def jars() -> Path:
    """The folder of jars; filled by Maven the first time. Raises Missing."""
    if not shutil.which("java"):
        raise Missing("Java 17 or newer: apt-get install openjdk-17-jre-headless")
    cache = Path(os.environ.get("CRISIS_CACHE", "~/.cache/crisis-streams")).expanduser()
    folder = cache / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "kafka.lock").open("w") as lock:  # two test runs at once fetch once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    if not shutil.which("mvn"):
        raise Missing("Maven, to fetch Apache Kafka once: apt-get install maven")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        args = [
            "mvn",
            "-q",
            "-B",
            "-f",
            POM,
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={scratch}/jars",
        ]
        done = subprocess.run(args, capture_output=True, text=True, timeout=FETCH_S)
        if done.returncode:
            raise Missing(f"Apache Kafka's jars; Maven could not fetch them:\n{done.stdout[-2000:]}")
        os.replace(f"{scratch}/jars", folder)


if __name__ == "__main__":
    jars()
