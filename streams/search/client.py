"""Asking a running dashboard from the command line."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
import msgspec
from msgspec import Struct

from models.errors import ServiceError
from models.pseudonyms import Link
from streams.config import Settings
from streams.config.secrets import secret

__all__ = ["Hit", "HitPage", "ask_link", "ask_search"]

T = TypeVar("T")


class Hit(Struct, frozen=True, omit_defaults=True):
    """One post found by meaning. `score`: cosine to what was asked; created_at is RFC 3339 UTC."""

    id: str
    text: str
    lang: str
    source: str
    created_at: str
    score: float
    url: str | None = None


class HitPage(Struct, frozen=True):
    """Answer of /api/search."""

    hits: list[Hit]
    searched: int  # posts in the window
    complete: bool  # False while the window is still being read


def base_url(settings: Settings) -> str:
    """Where the dashboard of these settings answers on this machine."""
    host = settings.dashboard.host
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{host}:{settings.dashboard.port}"


def ask_search(
    settings: Settings,
    text: str,
    *,
    lang: str | None = None,
    last_s: float | None = None,
    k: int = 10,
    url: str | None = None,
) -> list[Hit]:
    """Search through the dashboard's API. Raises ServiceError saying what to start if it does not answer."""
    asked = {"text": text, "lang": lang, "last_s": last_s, "k": k}
    return _ask(settings, url, "/api/search", {name: v for name, v in asked.items() if v is not None}, HitPage).hits


def ask_link(settings: Settings, post_id: str, url: str | None = None) -> Link:
    """Where a post stands at its platform; the dashboard writes down who asked. Raises ServiceError if it says no."""
    return _ask(settings, url, "/open", {"post": post_id}, Link)


def _of_file(line: str) -> str:
    """The token of a line `name role token`, or of one that is nothing else."""
    words = line.split()
    return words[2] if len(words) == 3 and words[1] in ("look", "label", "administer") else line


def _ask(settings: Settings, url: str | None, path: str, asked: dict[str, Any], kind: type[T]) -> T:
    token = secret(None, "CRISIS_DASHBOARD_TOKEN") or _of_file(secret(settings.dashboard.token_file) or "")
    base = (url or base_url(settings)).rstrip("/")
    try:
        answer = httpx.get(
            base + path,
            params=asked,
            headers={"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {}),
            timeout=30.0,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServiceError(
            f"no dashboard at {base} ({error}): it is what answers, so start `crisis dashboard` (or `crisis demo`), "
            "or say where it runs with --url"
        ) from error
    if answer.status_code == 401:
        raise ServiceError(f"{base} wants a token: set CRISIS_DASHBOARD_TOKEN to yours (`crisis token` makes one)")
    if answer.status_code != 200:
        raise ServiceError(f"{base} answered {answer.status_code}: {answer.text.strip()[:300]}")
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except msgspec.MsgspecError as error:
        raise ServiceError(f"{base} is no crisis dashboard of this version: {error}") from error
