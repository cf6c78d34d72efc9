"""What every Folder and every Alerts keeps (streams/pipeline/ports.py)."""

from __future__ import annotations

import msgspec

from models.records import Alert, Deletion
from streams.pipeline.ports import Alerts, Claim, Folder, Verdict


async def check_folder(folder: Folder) -> None:
    """The first to say it is the original; a redelivery gets the same answers; who edited or left is no original."""
    one, two = Claim("x/1", "0:1:0", "help", None), Claim("x/2", "0:2:0", "help", None)
    assert await folder.claim([]) == []
    for _ in range(2):  # the frame and its redelivery
        assert await folder.claim([one, two]) == [Verdict(), Verdict(repeats="x/1")]
    assert await folder.claim([Claim("x/3", "0:3:0", "RT help", "x/1")]) == [Verdict(repeats="x/1")]
    assert await folder.claim([Claim("x/1", "0:4:0", "safe now", None)]) == [Verdict(edits=True)]
    assert await folder.claim([Claim("y/1", "0:5:0", "help", None)]) == [Verdict()]
    assert await folder.claim([Deletion("y/1", 0.0), Claim("z/1", "0:6:1", "help", None)]) == [Verdict()]
    assert await folder.claim([Deletion("z", 0.0), Claim("w/1", "0:7:1", "help", None)]) == [Verdict()]  # an account


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
