"""`crisis search`: asks the running dashboard, which keeps the recent posts in memory (streams/search/follower.py)."""

from __future__ import annotations

import click

from streams.config import Settings
from streams.outputs.span import Span

__all__ = ["search"]


@click.command()
@click.argument("text")
@click.option("--lang", help="Only posts in this language, such as ar.")
@click.option("--last", "last_s", type=Span(), help="Only the last 15m, 6h, 1d … Default: all that is kept.")
@click.option("-k", default=10, show_default=True, type=click.IntRange(1, 100), help="Posts to show.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--url", help="Where the dashboard runs. Default: as in the settings.")
@click.pass_obj
def search(
    settings: Settings, text: str, lang: str | None, last_s: float | None, k: int, form: str, url: str | None
) -> None:
    """Find recent posts that mean TEXT, written in any language.

    Asks the running dashboard, which keeps the recent posts in memory.

    \b
    crisis search "people trapped under a roof" --last 6h
    crisis search "agua potable" --lang ar -k 20 --format json
    """
    from streams.search.client import ask_search

    found = ask_search(settings, text, lang=lang, last_s=last_s, k=k, url=url)
    if form == "json":
        import msgspec

        from streams.outputs.printable import safe_json

        for one in found:
            click.echo(safe_json(msgspec.json.encode(one)))
        return
    from rich.console import Console
    from rich.text import Text

    from streams.outputs.printable import printable, shorten, web_link

    console = Console(highlight=False, soft_wrap=True)
    if not found:
        console.print("No post found in the window that is kept.", style="dim")
    for one in found:
        line = Text(f"{one.score:.3f}  ", style="bold")
        line.append(shorten(printable(one.text), 400))
        facts = [one.created_at.replace("T", " ")[:19], printable(one.lang), printable(one.source)]
        facts += [web_link(one.url)] if web_link(one.url) else []
        console.print(line.append(f"\n       {' · '.join(facts)}", style="dim"))
