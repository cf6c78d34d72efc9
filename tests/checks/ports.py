"""What every Folder and every Alerts keeps (streams/pipeline/ports.py)."""

from __future__ import annotations

import msgspec

from models.records import Alert
from streams.pipeline.ports import Alerts, Claim, Folder, Gone, Verdict


async def check_folder(folder: Folder) -> None:
    """The first to say it is the original; a redelivery gets the same answers; a repeat takes the place of who edited
    or left."""
    one, two = Claim("x/1", "0:1:0", "help", None), Claim("x/2", "0:2:0", "help", None, post=b"two")
    assert await folder.claim([]) == []
    for _ in range(2):  # the frame and its redelivery
        assert await folder.claim([one, two]) == [Verdict(), Verdict(repeats="x/1")]
    assert await folder.claim([Claim("x/3", "0:3:0", "RT help", "x/1", post=b"three")]) == [Verdict(repeats="x/1")]
    for _ in range(2):  # what repeated it takes its place
        edit = Claim("x/1", "0:4:0", "safe now", None)
        assert await folder.claim([edit]) == [Verdict(edits=True, raised=(b"two",))]
    assert await folder.claim([Claim("y/1", "0:5:0", "help", None, post=b"y")]) == [Verdict(repeats="x/2")]
    closed = [Gone("x", "0:6:0"), Claim("z/1", "0:6:1", "help", None)]  # an account
    assert await folder.claim(closed) == [Verdict(raised=(b"y",)), Verdict(repeats="y/1")]


async def check_alerts(known: Alerts, made: Alert) -> None:
    """Only a newer revision replaces one; posts and whole accounts are found; what is gone stays gone."""
    first = msgspec.structs.replace(made, alert_id="a" * 32, post=msgspec.structs.replace(made.post, id="src:ann/1"))
    other = msgspec.structs.replace(made, alert_id="b" * 32, post=msgspec.structs.replace(made.post, id="src:ann/2"))
    newer = msgspec.structs.replace(first, revision=first.revision + 1, cluster_id="c1")
    assert await known.put_alerts([]) == [] and await known.alerts_of(["src:ann/1"]) == []
    assert await known.put_alerts([first, other]) == [first, other]
    assert await known.put_alerts([first]) == []  # redelivered
    assert await known.put_alerts([newer]) == [newer]
    assert await known.put_alerts([first]) == []  # older
    assert await known.alerts_of(["src:ann/1"]) == [newer]
    assert await known.alerts_of(["src:ann"]) == [newer, other] == await known.alerts_of(["src:ann/2", "src:ann"])
    assert await known.gone(["src:ann/1"]) == set()
    await known.mark_gone(["src:ann/1"])
    assert await known.gone(["src:ann/1", "src:ann/2"]) == {"src:ann/1"}
    await known.mark_gone(["src:ann"])
    assert await known.gone(["src:ann/1", "src:ann/2", "src:bob/1"]) == {"src:ann/1", "src:ann/2"}
