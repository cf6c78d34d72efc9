"""What people taught outlives the encoder version they taught: it is learnt anew on the next one's own vectors."""

import numpy as np
import pytest

from models.encoders.ready import Ready
from models.errors import VersionMismatch
from models.feedback.records import Label
from models.feedback.teach import teach
from streams.pipeline import stages
from streams.releases import takeover as takeover_module
from streams.releases.release import Release
from streams.releases.takeover import Takeover
from streams.releases.versions import load_version, make_ready
from tests.releases.shop import QUERIES, frame, post

pytestmark = pytest.mark.usefixtures("cache")

# Posts that these versions read wrongly: (text, query, verdict, which it is instead), and what that says of a reading.
LABELS = [
    ("our taps are dry since monday", "need.water", "right", ""),
    ("the minister spoke about water for days", "need.water", "wrong", ""),
    ("people on the roof are hurt and need help", "need.rescue", "other", "need.doctors"),
    ("the water polo team won on the roof", "need.water", "none", ""),
]
TAUGHT = [(0, "need.water", +1), (1, "need.water", -1), (2, "need.rescue", -1), (2, "need.doctors", +1)]
TAUGHT += [(3, "need.water", -1)]
POSTS = [post(n, text) for n, (text, *_) in enumerate(LABELS)]


def said(version: str) -> list[Label]:
    """As a dashboard writes them: of posts that this version had read."""
    return [
        Label(f"p{n}", query, verdict, "Ada", float(n), text, "en", version, "alert", instead)
        for n, (text, query, verdict, instead) in enumerate(LABELS)
    ]


def scores(ready: Ready) -> np.ndarray:
    """(posts, queries): what bars are held against, with what was taught."""
    vectors = ready.encoder.encode([post.text for post in POSTS])
    return np.stack([ready.matcher.standings(post, vector) for post, vector in zip(POSTS, vectors, strict=True)])


async def test_what_cannot_be_learnt_at_a_start_is_told_and_keeps_no_version_from_taking_over(shop, monkeypatch):
    chosen, names, _ = shop
    told: list[str] = []

    def fail(*_: object) -> None:
        raise MemoryError("too many texts")

    monkeypatch.setattr(takeover_module, "teach", fail)
    takeover = Takeover(chosen, most_wait_s=0.01)
    tell = takeover._tell
    monkeypatch.setattr(takeover, "_tell", lambda trouble, about: (told.append(trouble), tell(trouble, about)))
    release = Release().use(names["v1"], 0.0)
    await takeover.start(release, QUERIES, said("v1"))
    await takeover.apply(release.use(names["v2"], 0.0))
    untaught = await takeover.until(lambda s: s.current.name == names["v2"])
    assert untaught.current.matcher.feedback is None
    await takeover.set_queries(QUERIES[:2])
    assert len(takeover.serving.current.queries) == 2
    assert told and all("not learnt" in one and "too many texts" in one for one in [*told, takeover.trouble])
    monkeypatch.setattr(takeover_module, "teach", teach)
    assert (await takeover.until(lambda s: s.current.matcher.feedback is not None)).current.matcher.feedback.corrections
    assert takeover.trouble == ""
    await takeover.stop()


@pytest.mark.parametrize("name", ["v2", "v3"])  # of the same dimension, where an old correction would fit; of another
async def test_what_was_taught_is_learnt_anew_by_the_version_that_takes_over_and_moves_posts_as_people_said(shop, name):
    chosen, names, _ = shop
    plain = make_ready(chosen, load_version(chosen, names[name]), QUERIES)
    takeover = Takeover(chosen)
    release = Release().use(names["v1"], 0.0)
    await takeover.start(release, QUERIES)
    labels = said(takeover.serving.current.encoder.version)
    await takeover.set_labels(labels)
    before = takeover.serving.current
    await takeover.apply(release.use(names[name], 0.0))
    serving = await takeover.until(lambda s: s.current.name == names[name])
    await takeover.stop()
    now, columns = serving.current, {query.id: i for i, query in enumerate(plain.matcher.queries)}

    moved = scores(now) - scores(plain)
    for row, query_id, way in TAUGHT:
        assert way * moved[row, columns[query_id]] > 0.05, (POSTS[row].text, query_id)

    # Its corrections are those of its own vectors, fitted from the labels' texts, and none of the version before.
    expected = teach(plain, labels)[0].matcher.feedback
    mine, theirs = now.matcher.feedback.corrections, before.matcher.feedback.corrections
    assert mine.keys() == expected.corrections.keys() == theirs.keys() == {query_id for _, query_id, _ in TAUGHT}
    for query_id, correction in mine.items():
        assert np.allclose(correction.vectors, expected.corrections[query_id].vectors, atol=1e-6)
        assert np.allclose(correction.weights, expected.corrections[query_id].weights, atol=1e-6)
        assert correction.vectors.shape == (correction.labels, now.encoder.dim)
        if now.encoder.dim == before.encoder.dim:
            assert not np.allclose(correction.vectors, theirs[query_id].vectors, atol=1e-2)

    # A frame that the version before began is still read by what that one had learnt.
    begun = stages.embed(frame(1), before.encoder)
    assert stages.match(begun, serving.of(begun).matcher) == stages.match(begun, before.matcher)
    with pytest.raises(VersionMismatch):
        stages.match(begun, now.matcher)


async def test_a_label_taken_back_after_a_take_over_moves_nothing_any_more(shop):
    chosen, names, _ = shop
    plain = make_ready(chosen, load_version(chosen, names["v2"]), QUERIES)
    takeover = Takeover(chosen)
    release = Release().use(names["v1"], 0.0)
    await takeover.start(release, QUERIES, said("v1"))
    await takeover.apply(release.use(names["v2"], 0.0))
    taught = (await takeover.until(lambda s: s.current.name == names["v2"])).current
    assert not np.array_equal(scores(taught), scores(plain))
    await takeover.set_labels([])
    assert np.array_equal(scores(takeover.serving.current), scores(plain))
    await takeover.stop()
