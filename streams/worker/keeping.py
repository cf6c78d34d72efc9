"""Alerts that were sent are kept in the live view, and what stands last on the topic is what the view knows.

Several workers tell of one alert: who matched it, who knows its cluster, who withdraws it. In the view, and for whoever
follows the topic, the higher revision counts; but the broker compacts by what came last. A withdrawal that is sent
first and an update that is sent last would leave a deleted text there as all there is, and a frame that is read again
after a kill would take its cluster from an alert. So whoever finds that the view knows better sends that once more,
and what changes an alert that others may be telling of is sent before it is kept and after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from models.records import Alert
from streams.view.live import LiveView
from streams.worker.outbox import Outbox

__all__ = ["keep_alerts"]


async def keep_alerts(
    outbox: Outbox,
    view: LiveView,
    sent: Sequence[Alert],
    twice: Callable[[Alert], bool] = lambda alert: False,
    told: Sequence[bytes] = (),
) -> None:
    """Keep alerts that the broker has, and send again what must come last. twice: what changes an earlier alert.
    told: the JSON of each, as it was sent, where the caller has it.
    """
    kept = {(alert.alert_id, alert.revision) for alert in await view.put_alerts(sent, told)}
    again = [alert for alert in sent if twice(alert) and (alert.alert_id, alert.revision) in kept]
    late = [alert for alert in sent if (alert.alert_id, alert.revision) not in kept]
    while again or late:
        known = {alert.alert_id: alert for alert in await view.alerts_of({alert.post.id for alert in late})}
        again += [newer for a in late if (newer := known.get(a.alert_id)) and newer.revision > a.revision]
        if again:
            await outbox.send_alerts(again)
            await outbox.delivered()
        again, late = [], again  # while it was sent, somebody may have told more of it
