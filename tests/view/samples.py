"""An alert for the tests of the live view."""

import msgspec

from models.alerts import make_alert, place_in_cluster
from models.queries import Query
from models.records import Match, Post

QUERY = Query("need.water", "need", "water", "Drinking water", {"en": ["We need water"]}, "WASH", "#need +water")


def alert_for(
    post_id="p1",
    seen_at=1000.0,
    author=None,
    source="sms",
    level="alert",
    category="water",
    cluster=None,
    text="we need water",
):
    post = Post(post_id, text, seen_at - 1, seen_at, "en", source, author=author)
    match = Match(post_id, "need.water", QUERY.version, level, 0.6, 0.5, None, "We need water", "en", 0.9)
    made = make_alert(post, match, msgspec.structs.replace(QUERY, category=category), "v1")
    return made if cluster is None else place_in_cluster(made, cluster)
