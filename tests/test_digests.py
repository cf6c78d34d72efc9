"""`make digests` names every third-party image by what a registry has behind its tag, and changes nothing else."""

import hashlib
import re
from pathlib import Path

import httpx
import pytest

from deploy.digests import DIGEST, FILES, IMAGE, pinned

ROOT = Path(__file__).parents[1]


def registry(request: httpx.Request) -> httpx.Response:
    if request.url.host == "auth.docker.io":
        return httpx.Response(200, json={"token": request.url.params["scope"]})
    name, tag = re.fullmatch(r"/v2/(.+)/manifests/(.+)", request.url.path).groups()
    assert request.headers["authorization"] == f"Bearer repository:{name}:pull" and request.method == "HEAD"
    digest = hashlib.sha256(f"{name}:{tag}".encode()).hexdigest()
    return httpx.Response(200, headers={"docker-content-digest": f"sha256:{digest}"})


def bare(text: str) -> str:
    return re.sub("@sha256:[0-9a-f]{64}", "", text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_image_of_others_gets_its_digest_and_keeps_its_tag(path):
    text = path.read_text()
    client = httpx.Client(transport=httpx.MockTransport(registry))
    made = pinned(text, client)
    others = [found for found in IMAGE.finditer(text) if found["name"] != "crisis-streams"]
    assert others and len(DIGEST.findall(made)) == len(others)
    assert pinned(made, client) == made and DIGEST.sub("", made).replace("@", "") == DIGEST.sub("", text).replace(
        "@", ""
    )


def test_no_image_of_others_is_overlooked():
    named = re.findall(
        r"^ *image: (?!crisis-streams)(\S+)|^FROM (?!\$\{BASE\})(\S+)", "\n".join(p.read_text() for p in FILES), re.M
    )
    assert [image for image, _ in named if image] and not [base for _, base in named if base]
    assert all(IMAGE.match(f"image: {image}") for image, _ in named)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_image_of_others_stands_by_its_digest(path):
    others = [found[0] for found in IMAGE.finditer(path.read_text()) if found["name"] != "crisis-streams"]
    assert others and all(DIGEST.search(image) for image in others)


def test_a_registry_without_an_answer_changes_nothing():
    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json={"token": "x"})))
    with pytest.raises(ValueError, match="gave no digest"):
        pinned("image: redis:7-alpine", client)
