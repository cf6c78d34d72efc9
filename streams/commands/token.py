"""`crisis token`: let somebody in at the dashboard."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from models.errors import ConfigError
from streams.config import Settings
from streams.dashboard.access import ROLES, People, Role, check_name, hash_of

__all__ = ["token"]


@click.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="look", show_default=True, help="What they may do.")
@click.option("--file", "path", type=click.Path(dir_okay=False, path_type=Path), help="Default: dashboard.token_file.")
@click.option("--if-missing", is_flag=True, help="Only where there is no such file: nothing otherwise, with status 0.")
@click.pass_obj
def token(settings: Settings, name: str, role: Role, path: Path | None, if_missing: bool) -> None:
    """Make a token for NAME and print it, once: the file keeps its hash.

    \b
    look        sees the page
    label       also says which alerts are right, and opens posts at their platform
    administer  also reads who looked at what and opened which post

    A running dashboard reads the file when it starts. Take a line out of it to let somebody in no more.
    """
    check_name(name)
    path = path or settings.dashboard.token_file
    if path is None:
        raise ConfigError("name the file: --file, or dashboard.token_file (CRISIS_DASHBOARD__TOKEN_FILE)")
    if if_missing and path.exists() and path.stat().st_size:  # an empty one lets nobody in
        click.echo(f"{path} is there already", err=True)
        return
    made = secrets.token_urlsafe(24)
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        draft = path.with_name(path.name + ".new")
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
                out.write(f"{before}{'' if not before or before.endswith(chr(10)) else chr(10)}")
                out.write(f"{name} {role} sha256:{hash_of(made)}\n")
            People.read(draft)  # a name twice, or none: nothing is changed
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    click.echo(made)
