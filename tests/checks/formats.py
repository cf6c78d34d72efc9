"""What every alert format keeps (streams/outputs/__init__.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from models.records import Alert
from streams.outputs import Options, Print, Told
from tests.outputs.invented import HOSTILE, invent, later

CONTROLS = "\x00\x07\x1b\x9b\u202e\u202c"


def check_format(make: Callable[[Options], Print], printed: Callable[[], str], lazy: bool = True) -> None:
    """Prints nothing that could move a cursor; takes alerts, updates and withdrawals; prints each as it comes.

    printed: what came out since it was asked last. lazy: with `follow`, one is out before the next is asked for.
    """
    told: list[Told] = []
    before: Alert | None = None
    for alert in (
        first := invent("h", text=HOSTILE.replace("\ud800", "")),
        later(first, cluster_id="c1"),
        later(later(first), status="withdrawn", withdrawn_because="deleted"),
        invent("plain", lang="und", level="suggestion", probability=0.5),
    ):
        told.append((alert, before if before is not None and before.alert_id == alert.alert_id else None))
        before = alert
    for follow in (False, True):
        make(Options(follow=follow))(iter(told))
        out = printed()
        assert "plain" in out or "No water" in out
        assert not any(control in out for control in CONTROLS)
    make(Options())(iter(()))
    printed()

    def one_by_one() -> Iterator[Told]:
        yield told[0]
        assert printed(), "the first alert was held back until the second came"
        yield told[3]

    if lazy:
        make(Options(follow=True))(one_by_one())
        printed()
