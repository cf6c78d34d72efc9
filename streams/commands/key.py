"""`crisis key`: make the secret of the pseudonyms."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from models.errors import ConfigError

__all__ = ["key", "make_key"]


def make_key(path: Path, mode: int = 0o600) -> None:
    """Write a new secret, for its owner's eyes only unless `mode` says more.

    Raises ConfigError where there is a file already, or none can be made; what could not be written whole is removed.
    """
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with open(opened, "w", encoding="ascii") as out:
                out.write(secrets.token_urlsafe(32) + "\n")
        except OSError:
            path.unlink()
            raise
    except FileExistsError as error:
        if not path.stat().st_size:
            raise ConfigError(f"{path} is there and empty: remove it, then it is made anew") from error
        raise ConfigError(f"{path} is there: with another secret every pseudonym would be another one") from error
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


@click.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--if-missing", is_flag=True, help="Leave a file that is there as it is, with status 0.")
@click.option("--group", is_flag=True, help="Your group may read it too: for a token that another service sends.")
def key(path: Path, if_missing: bool, group: bool) -> None:
    """Make a secret, above all that of the pseudonyms: PATH, readable by you alone.

    Every worker needs the same one (privacy.key_file), and so does whoever types original ids (`crisis forget`,
    `why-not`). Who has it can find the post of a pseudonym that he suspects: it is never in Redis, on a topic or in a
    log. Without it a pseudonym cannot be undone; throw it away when the response ends.
    """
    if if_missing and path.exists() and path.stat().st_size:
        click.echo(f"{path} is there already")
    else:
        make_key(path, 0o640 if group else 0o600)
        click.echo(f"made {path}: name it in privacy.key_file (CRISIS_PRIVACY__KEY_FILE) of every worker")
