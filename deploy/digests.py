"""`make digests`: write what each third-party image has behind its tag now into compose.yaml and the Dockerfile.

A tag can be moved by whoever owns it, a digest names the bytes (OCI distribution specification 1.1, "Pulling
manifests": the registry answers HEAD with Docker-Content-Digest). Needs the network; without it nothing is changed.
Run it when images are to be updated, look at the difference, and commit it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import httpx

HERE = Path(__file__).parent
FILES = (HERE / "compose.yaml", HERE / "Dockerfile")
OURS = "crisis-streams"
IMAGE = re.compile(
    r"(?P<before>^ *image: |^ARG BASE=)(?P<name>[\w./-]+):(?P<tag>[\w.-]+)(?:@sha256:[0-9a-f]{64})?", re.M
)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
KINDS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",  # of all platforms
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)


def digest_of(client: httpx.Client, name: str, tag: str) -> str:
    """What Docker Hub has behind `name:tag`, for all platforms. Raises ValueError or httpx.HTTPError."""
    repository = name if "/" in name else f"library/{name}"
    asked = {"service": "registry.docker.io", "scope": f"repository:{repository}:pull"}
    token = client.get("https://auth.docker.io/token", params=asked).raise_for_status().json()["token"]
    answer = client.head(
        f"https://registry-1.docker.io/v2/{repository}/manifests/{tag}",
        headers={"Authorization": f"Bearer {token}", "Accept": KINDS},
    ).raise_for_status()
    digest = answer.headers.get("docker-content-digest", "")
    if not DIGEST.fullmatch(digest):
        raise ValueError(f"{name}:{tag}: the registry gave no digest")
    return digest


def pinned(text: str, client: httpx.Client) -> str:
    """The file's text with every third-party image by its digest; the tag stays, for who reads it."""

    def pin(found: re.Match[str]) -> str:
        before, name, tag = found["before"], found["name"], found["tag"]
        return found.group() if name == OURS else f"{before}{name}:{tag}@{digest_of(client, name, tag)}"

    return IMAGE.sub(pin, text)


def main() -> None:
    """All files or none."""
    try:
        with httpx.Client(timeout=30.0) as client:
            made = {path: pinned(path.read_text(encoding="utf-8"), client) for path in FILES}
    except (httpx.HTTPError, ValueError, KeyError) as error:
        sys.exit(f"nothing was changed: {error}")
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
        print(f"{path}: {len(DIGEST.findall(text))} images by digest")


if __name__ == "__main__":
    main()
