"""Asking a running dashboard from the command line."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
import msgspec
from msgspec import Struct

from models.errors import ConfigError, ServiceError
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


def _token(settings: Settings) -> str | None:
    """Of whoever asks, or that of a file that names nobody. Raises ConfigError where neither tells it.

    Never that of a line `name role token`: what is asked goes on the record under that name.
    """
    file = settings.dashboard.token_file
    if (own := secret(None, "CRISIS_DASHBOARD_TOKEN")) or file is None:
        return own
    line = secret(file) or ""
    if len(line.split()) > 1 or line.startswith(("#", "sha256:")):
        raise ConfigError(
            f"{file} is not one token for everybody, so it does not say who asks: set CRISIS_DASHBOARD_TOKEN to your "
            "own (`crisis token NAME` makes one)"
        )
    return line


def _ask(settings: Settings, url: str | None, path: str, asked: dict[str, Any], kind: type[T]) -> T:
    token = _token(settings)
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
