"""The `crisis` command. Each subcommand lives beside what it does and is imported only when it is used."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from models.errors import CrisisError
from streams.commands import LazyGroup

__all__ = ["crisis", "main"]

# name → (module:attribute, one line of help). Imported on use, so that `crisis --help` answers at once.
COMMANDS = {
    "demo": ("streams.commands.demo:demo", "Try everything on this machine: no Kafka, Redis or model needed."),
    "doctor": ("streams.commands.doctor:doctor", "Check broker, topics, Redis, encoder, queries and clock."),
    "status": ("streams.commands.status:status", "Say in one sentence whether alerts come as they should."),
    "topics": ("streams.commands.topics:topics", "Make the Kafka topics and load the bundled queries."),
    "key": ("streams.commands.key:key", "Make the secret of the pseudonyms that workers need."),
    "worker": ("streams.commands.worker:worker", "Run the Faust agents: normalise, embed, match, cluster."),
    "ingest": ("streams.commands.ingest:ingest", "Read posts from a source into posts.raw."),
    "dashboard": ("streams.dashboard:dashboard", "Serve the live page."),
    "token": ("streams.commands.token:token", "Let somebody in at the page, with a role."),
    "open": ("streams.commands.open:open_post", "Where a post of an alert stands at its platform, for who may."),
    "alerts": ("streams.commands.alerts:alerts", "Print or follow alerts: text, JSON, GeoJSON, CAP."),
    "search": ("streams.commands.search:search", "Find posts by meaning, in any language."),
    "query": ("streams.commands.query:query", "List, show, add, remove and test the standing queries, live."),
    "label": ("streams.commands.label:label", "Teach: say which alerts are right; list, take back, export."),
    "why-not": ("streams.commands.why_not:why_not", "Say in one sentence why a post gave no alert."),
    "rejected": ("streams.commands.rejected:rejected", "List, show and retry what was refused."),
    "forget": ("streams.commands.forget:forget", "Take a person's posts, or one post, out of every store."),
    "restore": ("streams.commands.restore:restore", "Put alerts and clusters back into an emptied Redis, from Kafka."),
    "encoder": ("streams.commands.encoder:encoder", "List, compare, stage, use and roll back encoder versions, live."),
    "replay": ("streams.commands.replay:replay", "Run the whole pipeline over a file, without a broker."),
    "bench": ("streams.commands.bench:bench", "Measure what a post costs, stage by stage."),
    "embed": ("streams.commands.replay:embed", "Embed the posts of a file."),
    "match": ("streams.commands.replay:match", "Score the posts of a file against every query."),
    "cluster": ("streams.commands.replay:cluster", "Cluster the posts of a file."),
}


@click.command(
    cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.option("--config", type=click.Path(dir_okay=False), help="Settings file (TOML). Default: ./crisis.toml.")
@click.version_option(package_name="crisis-streams")
@click.pass_context
def crisis(ctx: click.Context, config: str | None) -> None:
    """Find needs and offers in live crisis social media, in any language, as they are posted.

    First time here? `crisis demo` shows the whole pipeline on this machine. With your own Kafka and Redis: set
    CRISIS_BROKER__BOOTSTRAP and CRISIS_REDIS__URL (or crisis.toml), then `crisis key`, `crisis topics`,
    `crisis worker`,
    `crisis dashboard` and one of `crisis ingest …`. `crisis doctor` says what is missing.
    """
    from streams.config import load_settings, unknown_variables

    if ctx.resilient_parsing:
        return
    for told in unknown_variables():
        click.secho(f"crisis: {told}", fg="yellow", err=True)
    ctx.obj = load_settings(config)


def main() -> None:
    """Entry point: our own errors, and what the system refuses (a full disk), are told in one line, not as a
    traceback.
    """
    try:
        crisis(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.message = _shown(error.message)
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except CrisisError as error:
        _end(error)
    except OSError as error:
        if os.environ.get("CRISIS_DEBUG"):
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        _end(f"{where}{error.strerror or str(error) or type(error).__name__}")


def _end(error: object) -> NoReturn:
    click.secho(f"crisis: {_shown(error)}", fg="red", err=True)
    sys.exit(1)


def _shown(error: object) -> str:
    from streams.config.secrets import redacted  # with all settings: only where there is something to tell

    return redacted(error)


if __name__ == "__main__":
    main()
