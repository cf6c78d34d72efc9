"""Which encoder version a command uses: the one that is current, as workers do, or the one it is told to."""

from __future__ import annotations

import click
from rich.console import Console

from models.encoders.ready import Loaded
from models.encoders.registry import OWN
from models.errors import CrisisError
from streams.config import Settings
from streams.releases.versions import current_version, load_version, resolve

__all__ = ["VERSION", "chosen"]

note = Console(stderr=True)
VERSION = click.option(
    "--version",
    help="Encoder version: one of the registry, or `own` for the settings' encoder. Default: what the broker says is "
    "current, where one answers, else `own`.",
)


def chosen(settings: Settings, version: str | None) -> Loaded:
    """The encoder version a command is to use, loaded; says on standard error which one that is, and why."""
    if version is None:
        name, why = current_version(settings)
    else:
        name, why = resolve(settings, version), "as asked"
    try:
        loaded = load_version(settings, name)
    except CrisisError as error:
        if name == OWN:
            raise
        raise click.ClickException(
            f"{name} is {why} and cannot be used here: {error} (or give --version own)"
        ) from error
    note.print(f"encoder {loaded.encoder.version}, version {name} ({why})", highlight=False, soft_wrap=True)
    return loaded
