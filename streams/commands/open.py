"""`crisis open`: where a post of an alert stands at its platform."""

from __future__ import annotations

import click

from streams.config import Settings
from streams.outputs.printable import printable, web_link
from streams.search.client import ask_link

__all__ = ["open_post"]


@click.command("open")
@click.argument("post_id")
@click.option("--url", help="Where the dashboard runs. Default: on this machine, as in the settings.")
@click.pass_obj
def open_post(settings: Settings, post_id: str, url: str | None) -> None:
    """Print the link of POST_ID, and what its source calls it.

    Alerts name posts by pseudonyms; the dashboard knows what they stand for, tells whoever has the role `label`, and
    writes down who asked. Set CRISIS_DASHBOARD_TOKEN to your token.
    """
    found = ask_link(settings, post_id, url)
    for line in filter(None, (web_link(found.url), found.id)):
        click.echo(printable(line))
