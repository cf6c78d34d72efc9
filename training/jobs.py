"""What every job shares: presets and `key=value` on the command line, atomic files, the record of a run.

A job's knobs are one frozen msgspec Struct. `python -m training.distill laptop steps=500` takes the preset `laptop`
and changes one knob; an unknown knob, or a value of the wrong type, stops the job before it does anything.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from safetensors import SafetensorError

from models.errors import ConfigError, CrisisError
from models.moments import rfc3339

__all__ = [
    "Count",
    "Positive",
    "cache_dir",
    "code_hash",
    "code_version",
    "machine",
    "model_loaded",
    "model_named",
    "read_config",
    "run",
    "write_atomically",
    "write_result",
]

C = TypeVar("C", bound=msgspec.Struct)
M = TypeVar("M")
# Types of knobs that 0 makes no sense of.
Count = Annotated[int, msgspec.Meta(gt=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
RESULTS = Path(__file__).resolve().parent / "results"


def cache_dir() -> Path:
    """Where jobs keep what is dear to compute (teacher vectors, checkpoints): CRISIS_CACHE, never the tree."""
    path = Path(os.environ.get("CRISIS_CACHE", "~/.cache/crisis-streams")).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return path


def read_config(presets: Mapping[str, C], argv: Sequence[str]) -> C:
    """The preset named first, with each `key=value` applied. Raises ConfigError naming the knob at fault."""
    if not argv or argv[0] not in presets:
        raise ConfigError(f"name a preset first: {' | '.join(presets)}; got {' '.join(argv) or 'nothing'}")
    config = presets[argv[0]]
    changes: dict[str, Any] = {}
    for word in argv[1:]:
        key, equals, value = word.partition("=")
        if not equals or key not in type(config).__struct_fields__:
            known = ", ".join(type(config).__struct_fields__)
            raise ConfigError(f"unknown knob {word!r}: write key=value with one of {known}")
        changes[key] = value
    hints = {field.name: field.type for field in msgspec.structs.fields(type(config))}
    for key, value in changes.items():
        try:
            listed = value.split(",") if isinstance(getattr(config, key), tuple) else value
            changes[key] = msgspec.convert(listed, hints[key], strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{key}={value}: {error}") from None
    return msgspec.structs.replace(config, **changes)


def run(
    main: Callable[[C], object],
    presets: Mapping[str, C],
    argv: Sequence[str] | None = None,
    read: Callable[[Sequence[str]], C] | None = None,
) -> None:
    """The command line of a job: its presets and knobs, `--help`, and one sentence where something is wrong.

    read: words → config, for a job whose first word is no preset (an encoder, a model).
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or {"-h", "--help"} & set(words):
        print(help_text(main, presets))
        sys.exit(0 if words else 2)
    try:
        config = read(words) if read else read_config(presets, words)
        code_version()  # asked before hours of work
        main(config)
    # OSError: also transformers, of a model that is not there; SafetensorError: also of a full disk
    except (CrisisError, OSError, FloatingPointError, SafetensorError) as error:
        sys.exit(f"error: {error}")


def help_text(main: Callable[[C], object], presets: Mapping[str, C]) -> str:
    """What the job is, its presets, and each knob with its default and the note beside it in the source."""
    knobs = type(next(iter(presets.values())))
    notes = _notes(inspect.getsource(knobs))
    lines = [
        inspect.getdoc(sys.modules[main.__module__]),
        "",
        f"presets: {', '.join(presets)}",
        "",
        "knobs (key=value):",
    ]
    for field in msgspec.structs.fields(knobs):
        default = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
        shown = "" if default is msgspec.NODEFAULT else f"={default}"
        lines.append(f"  {field.name}{shown}" + (f"  – {notes[field.name]}" if field.name in notes else ""))
    return "\n".join(lines)


def _notes(source: str) -> dict[str, str]:
    """The comment beside each field of a Struct, also where its default is spread over lines."""
    notes: dict[str, str] = {}
    field = ""
    for line in source.splitlines():
        if named := re.match(r"    (\w+): ", line):
            field = named[1]
        code, mark, note = line.partition("  # ")
        if field and mark and code.strip():
            notes.setdefault(field, note)
    return notes


def model_named(value: str, knob: str) -> str:
    """A folder or hub id that a knob names. Raises ConfigError where it can only be a folder, and none is there."""
    if value.startswith(("/", ".", "~")) and not Path(value).is_dir():
        raise ConfigError(f"{knob}={value}: no such folder")
    return value


def model_loaded(load: Callable[[str], M], value: str, knob: str) -> M:
    """What `load` makes of a folder or hub id that a knob names. Raises ConfigError where the folder is not there and
    the hub does not give it either."""
    try:
        return load(model_named(value, knob))
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: of a hub that cannot be reached
        if Path(value).is_dir() or "out of memory" in str(error):
            raise
        told = str(error).partition("\n")[0]
        raise ConfigError(f"{knob}={value}: no such folder here, and it cannot be had as a hub id ({told})") from None


def write_atomically(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    os.replace(temporary, path)


@cache  # asked first when a job begins: a commit or an edit made meanwhile is not what ran
def code_version() -> str:
    """The commit the job began from, with `+changes` where the tree differed; `unknown` outside a checkout.

    What lies in training/results does not count: it is what jobs write.
    """
    try:
        here = Path(__file__).resolve().parent
        commit = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", "training", "models", ":!training/results"],
            cwd=here.parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+changes" if changed else "")


@cache
def code_hash() -> str:
    """sha256 over what lies in training/ and models/ but for results: which code a figure is of, committed or not."""
    here = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(path for folder in (here, here.parent / "models") for path in folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc" and RESULTS not in path.parents:
            digest.update(f"{path.relative_to(here.parent)} ".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def machine() -> str:
    """The processor and its cores, in words, so that times can be compared."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _short(value: Any) -> Any:
    """A path without the folders of this machine: results are read elsewhere. Of a run's `best` the run is kept."""
    if not isinstance(value, str) or not value.partition("=")[2].startswith("/") and not value.startswith("/"):
        return value
    key, equals, path = value.rpartition("=")
    kept = 2 if Path(path).name in ("best", "complete", "onelook", "model") else 1
    return f"{key}{equals}{'/'.join(Path(path).parts[-kept:])}"


def write_result(path: Path, config: msgspec.Struct, data_hash: str, seed: int, metrics: Mapping[str, Any]) -> Path:
    """One JSON per run: what ran, on what, with which data and seed, and what came out. Returns where it lies.

    training/results holds only what committed code made: of other code it goes to CRISIS_CACHE/results, and is said.
    """
    if code_version().endswith("+changes") and RESULTS in path.resolve().parents:
        path = cache_dir() / "results" / path.resolve().relative_to(RESULTS)
        print(
            f"training/ or models/ has changes that no commit holds: the result is in {path}, not in training/results"
        )
    module = getattr(sys.modules["__main__"], "__spec__", None)
    record = {
        "command": shlex.join(
            ["python", "-m", module.name.removesuffix(".__main__") if module else "job", *map(_short, sys.argv[1:])]
        ),
        "commit": code_version(),
        "machine": machine(),
        "finished_at": rfc3339(time.time(), "seconds"),
        "data_hash": data_hash,
        "seed": seed,
        "config": {key: _short(value) for key, value in msgspec.to_builtins(config).items()},
        "metrics": metrics,
    }
    write_atomically(path, json.dumps(record, indent=1, ensure_ascii=False).encode() + b"\n")
    return path
