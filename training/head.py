"""Fit the head that says what a post is, and what makes it a probability; both go into the encoder's calibration.

    python -m training.head laptop                   # the bundled encoder
    python -m training.head laptop encoder=DIR       # any bundle
    python -m training.head laptop rescale=true      # its probabilities alone, of classes it has

What it learns from: training/class_material.py. Probabilities are fitted on real events and written streams that the
head never saw, weighted as their streams were drawn, so that they hold for posts as they come. Of a bundle with
word axes (training/words.py) the head learns the rest; what the words say is added to it.

Notices (warnings, evacuation orders, damage) have their classes from the posts labelled so. Their packs' sentences give
them directions and are not learnt as classes: nothing about needs and offers hangs on the notices there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from models.calibration import Calibration, Fallback, material_hash
from models.encoders.bundle import CALIBRATION, QUERY_VECTORS, add_file
from models.encoders.load import folder_of
from models.encoders.protocol import Encoder
from models.encoders.query_vectors import pack_vectors, standing_texts
from models.encoders.ready import Loaded, load, ready
from models.encoders.registry import OWN
from models.encoders.words import WordedEncoder
from models.errors import ConfigError
from models.matching import Matcher
from models.queries import aid_queries, background_texts, load_queries
from models.reading import CLEAR_OFFER, Head, Terms, logit
from models.records import AID, NOTICES, PRIORITIES, is_notice
from training.class_material import MAY_LEARN, Asked, Shares, Taught, read_material
from training.files import data_dir
from training.jobs import cache_dir, run, write_atomically, write_result
from training.keeping import keeping
from training.languages import fit_languages
from training.own_queries import as_people_add_them, directions_of
from training.posts import LabelledPost, classes, read_posts, written_posts
from training.several import fit_several

__all__ = ["Config", "fit", "fit_classes", "fit_terms", "fit_urgency", "plain_of", "that_scale"]

MAY_CALIBRATE = MAY_LEARN | {"trecis-stream"}  # of their gold events; HumAID and CrisisNLP only judge
ABSENT = -12.0  # bias of a class that no post taught
NO_FALLBACK = Fallback(alert=6.0, suggestion=3.5, alert_rate=0.0, suggestion_rate=0.0)  # a head needs no thresholds


class Config(Shares, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Knobs of the head."""

    encoder: str = ""  # bundle directory; empty = the bundled one
    install: bool = True  # put the calibration into the bundle
    rescale: bool = False  # keep the classes that the bundle has: only what makes of them probabilities is fitted
    result: str = ""  # where the JSON of the measures goes; empty = nowhere
    # Inverse of the l2 penalty. On posts newer than the encoder 1, 2, 4, 8 gave a cross-entropy of 1.19, 1.11, 1.08 and
    # 1.09 (380 written ones), 1.87, 1.86, 1.89 and 1.97 (1,000 real ones).
    strength: float = 2.0
    # What the words' log-probability of a class counts beside the head's own. Learnt with the head, from posts held out
    # of the words, it did no better: right query in 20 languages .735 to .754, of real posts .31 to .41; so .750, .42.
    # .4, .55 under 25baa1c53592: right query first .825, .831; real posts found .536, .519; alerts on real posts right
    # .802, .811; other real posts that alert 1.3, 1.2 %; HumAID's requests, AP .142, .135.
    words: float = 0.4
    iterations: int = 200


PRESETS = {"laptop": Config(), "smoke": Config(iterations=5, install=False, most=1_500, everyday=2)}


def fit_classes(config: Config, vectors: np.ndarray, taught: Taught, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Multinomial logistic regression: (classes, d) and (classes,). A class without posts is never the answer."""
    from sklearn.linear_model import LogisticRegression

    place = {name: i for i, name in enumerate(names)}
    wanted = np.array([place[label] for label in taught.labels])
    model = LogisticRegression(C=config.strength, max_iter=config.iterations)
    model.fit(vectors, wanted, sample_weight=np.array(taught.weights))
    weight = np.zeros((len(names), vectors.shape[1]))
    bias = np.full(len(names), ABSENT)
    if len(model.classes_) == 2:  # scikit-learn gives the line between two classes, not one for each
        weight[model.classes_[1]], bias[model.classes_] = model.coef_[0], (0.0, model.intercept_[0])
    else:
        weight[model.classes_], bias[model.classes_] = model.coef_, model.intercept_
    return weight, bias


def fit_terms(features: np.ndarray, right: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights and bias of the log-odds that a reading is right. features: (n, f); right: (n,) bool."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e3, max_iter=1000).fit(features, right, sample_weight=weights)
    return model.coef_[0], float(model.intercept_[0])


def that_scale(posts: Sequence[LabelledPost]) -> list[LabelledPost]:
    """Those that the scale of probabilities is fitted on: they judge, and were drawn as a stream has them."""
    return [p for p in posts if p.judges and (p.use == "stream" or p.origin in MAY_CALIBRATE)]


def right_readings(posts: Sequence[LabelledPost], query_ids: Sequence[str]) -> np.ndarray:
    """(n, q) bool: the queries each post is a right reading of."""
    return np.array([[query in post.right for query in query_ids] for post in posts])


def calibrated(
    head: Head, matcher: Matcher, encoder: Encoder, posts: Sequence[LabelledPost], vectors: np.ndarray, seed: int
) -> Head:
    """The head with its terms fitted on posts it never saw, each weighing what it stands for.

    Each set's weights are made to mean 1, so that a set drawn thinly does not outweigh the rest.
    """
    found, scores = head.log_probabilities(vectors), matcher.directed(vectors)
    mean = {origin: np.mean([p.weight for p in posts if p.origin == origin]) for origin in {p.origin for p in posts}}
    weight = np.array([p.weight / mean[p.origin] for p in posts])
    either = head.gate(found, *AID)
    aid, notices = _classed(head, matcher, notice=False), _classed(head, matcher, notice=True)

    def taught(which: list[int]) -> Terms:
        """Of the log-odds that a reading is right, over all readings of these queries."""
        ids = [matcher.queries[i].id for i in which]
        right = right_readings(posts, ids)
        read = np.stack([head.log_odds(found, name) for name in ids], axis=1)
        features = np.stack([read.ravel(), scores[:, which].ravel()], axis=1)
        (first, query), bias = fit_terms(features, right.ravel(), np.repeat(weight, len(which)))
        return Terms(query=round(float(query), 4), head=round(float(first), 4), bias=round(bias, 4))

    def unknown(which: list[int]) -> Terms:
        """Of the log-odds that a post of a query's kind is right for it, were it added by a person."""
        own = as_people_add_them([matcher.queries[i] for i in which], seed)
        standard = directions_of(own, encoder, vectors)
        right = right_readings(posts, [one.bundled for one in own])
        kinds = {kind: NOTICES if is_notice(f"{kind}.") else (kind,) for kind in {one.query.kind for one in own}}
        of_kind = {
            kind: np.array([any(name.partition(".")[0] in alike for name in post.right) for post in posts])
            for kind, alike in kinds.items()
        }
        told = np.stack([of_kind[one.query.kind] for one in own], axis=1)
        (query,), bias = fit_terms(standard[told][:, None], right[told], np.repeat(weight, len(own))[told.ravel()])
        return Terms(query=round(float(query), 4), bias=round(bias, 4))

    wanted = right_readings(posts, [matcher.queries[i].id for i in aid]).any(axis=1)
    (k,), d = fit_terms(either[:, None], wanted, weight)
    scaled = msgspec.structs.replace(
        head,
        taught=taught(aid),
        unknown=unknown(aid),
        actionable=Terms(query=0.0, gate=round(float(k), 4), bias=round(d, 4)),
        taught_notice=taught(notices),
        unknown_notice=unknown(notices),
    )
    queries = [matcher.queries[i] for i in aid]
    likely = scaled.probabilities(queries, vectors, scores[:, aid], matcher.among[aid])
    first = scaled.shared(queries, vectors, likely).argmax(axis=1)
    right = right_readings(posts, [query.id for query in queries])
    rows = np.arange(len(posts))
    languages = fit_languages(logit(likely[rows, first]), right[rows, first], weight, [p.lang for p in posts])
    return msgspec.structs.replace(scaled, languages=languages)


def _classed(head: Head, matcher: Matcher, notice: bool) -> list[int]:
    """The matcher's queries that the head was taught: its notices, or its needs and offers."""
    queries = enumerate(matcher.queries)
    return [i for i, query in queries if query.id in head.place and is_notice(query.id) == notice]


def fit_urgency(config: Config, vectors: np.ndarray, posts: Sequence[LabelledPost]) -> list[float]:
    """(d + 1,): log-odds that lives hang on the next hours, of needs, offers and warnings against everything else."""
    urgent = np.array([post.urgency == "urgent" for post in posts])
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=config.strength, max_iter=config.iterations).fit(vectors, urgent)
    return [round(float(x), 4) for x in (*model.coef_[0], model.intercept_[0])]


def fit_priority(config: Config, vectors: np.ndarray, posts: Sequence[LabelledPost]) -> list[float]:
    """(d + 2,) for `Head.priorities`: one line for both cuts of urgent, soon, routine, and the constant of each cut.

    posts: those whose urgency was labelled, (n, d) vectors. Each is a row for each cut; a column tells the cuts apart.
    """
    from sklearn.linear_model import LogisticRegression

    place = np.array([PRIORITIES.index(post.urgency) for post in posts])  # 0 = urgent
    apart = 10.0  # so large that its weight, which is penalised too, may be small
    rows = np.hstack([np.vstack([vectors, vectors]), np.repeat([[0.0], [apart]], len(posts), axis=0)])
    reached = np.concatenate([place == 0, place <= 1])
    # The three weigh the same, for routine calls for help are few in what was written, and most in real streams.
    shares = np.array([1 / np.mean(place == at) for at in place])
    shares *= [config.read if post.use == "read" else 1.0 for post in posts]
    model = LogisticRegression(C=config.strength, max_iter=config.iterations)
    model.fit(rows, reached, sample_weight=np.tile(shares / shares.mean(), 2))
    *line, cut = model.coef_[0]
    urgent = float(model.intercept_[0])
    return [round(float(x), 4) for x in (*line, urgent, urgent + apart * max(float(cut), 0.0))]


def plain_of(encoder: Encoder) -> Encoder:
    """The encoder without word axes: what the head itself learns from."""
    return encoder.encoder if isinstance(encoder, WordedEncoder) else encoder


def of_words(config: Config, encoder: Encoder, names: list[str]) -> np.ndarray:
    """(classes, axes): weights of the word axes, by which the words' log-probability of each class counts `words`
    times; (classes, 0) for an encoder without any."""
    if not isinstance(encoder, WordedEncoder):
        return np.zeros((len(names), 0))
    told = encoder.words
    return np.array([[config.words / told.share * (axis == name) for axis in told.classes] for name in names])


def fit(
    config: Config, encoder: Encoder, posts: Sequence[LabelledPost], taught: Taught, asked: Asked | None = None
) -> Calibration:
    """A calibration with the head learnt from `taught`; its terms and lines from `posts`, as each may be used.

    asked: what of `posts` asks for several things is learnt from; None: nothing of the kind is.
    """
    queries = load_queries()
    names = classes(posts, [query.id for query in queries])
    plain, words = plain_of(encoder), of_words(config, encoder, names)
    weight, bias = fit_classes(config, plain.encode(taught.texts), taught, names)
    weight, unheard = np.hstack([weight, words]), [0.0] * words.shape[1]
    learning = [p for p in posts if not p.judges and (p.use != "read" or p.origin in MAY_LEARN)]
    labelled = [p for p in learning if p.urgency]
    several = None
    if asked:
        several = fit_several(plain.encode(asked.texts), asked, names, config.strength, config.iterations)
        several = msgspec.structs.replace(several, weight=[[*row, *unheard] for row in several.weight])
    head = Head(
        names,
        [[round(float(x), 4) for x in row] for row in weight],
        [round(float(x), 4) for x in bias],
        taught=Terms(query=0.0, head=1.0),
        unknown=Terms(query=1.0),
        clear_offer=CLEAR_OFFER,
        urgency=_widened(fit_urgency(config, plain.encode([p.text for p in learning]), learning), plain.dim, unheard),
        priority=_widened(fit_priority(config, plain.encode([p.text for p in labelled]), labelled), plain.dim, unheard),
        several=several,
    )
    return _scaled(config, head, encoder, posts)


def _widened(line: list[float], dim: int, unheard: list[float]) -> list[float]:
    """A line over `dim` axes and its constants, which hears nothing of the axes that follow."""
    return [*line[:dim], *unheard, *line[dim:]]


def rescaled(config: Config, loaded: Loaded, encoder: Encoder, posts: Sequence[LabelledPost]) -> Calibration:
    """The bundle's own calibration with its head's probabilities fitted anew. Raises ConfigError without a head."""
    known = loaded.calibration
    if known is None or known.head is None:
        raise ConfigError(f"rescale=true: {encoder.version} has no head to keep; run it without")
    return _scaled(config, known.head, encoder, posts)


def _scaled(config: Config, head: Head, encoder: Encoder, posts: Sequence[LabelledPost]) -> Calibration:
    matcher = ready(Loaded(OWN, encoder), load_queries()).matcher
    scaling = that_scale(posts)
    head = calibrated(head, matcher, encoder, scaling, encoder.encode([p.text for p in scaling]), config.seed)
    return Calibration(encoder.version, material_hash(background_texts(), aid_queries()), {}, NO_FALLBACK, head=head)


def main(config: Config) -> Calibration:
    path = folder_of(config.encoder or None)
    loaded = load(path)
    encoder = keeping(loaded.encoder, cache_dir() / "vectors")
    if config.rescale:
        learnt: list[str] = []
        calibration = rescaled(config, loaded, encoder, written_posts() + read_posts(data_dir()))
    else:
        taught, asked, posts = read_material(config)
        learnt, calibration = taught.texts, fit(config, encoder, posts, taught, asked)
    content = msgspec.json.encode(calibration) + b"\n"
    if config.install:
        add_file(path, CALIBRATION, content)
        add_file(path, QUERY_VECTORS, pack_vectors(encoder, standing_texts()))  # a start need not read them again
    else:
        write_atomically(cache_dir() / CALIBRATION, content)
    assert calibration.head
    head = calibration.head
    print(
        f"{encoder.version}: {len(head.classes)} classes, {len(learnt):,} posts learnt; {head.taught}; {head.unknown}"
    )
    if config.result:
        digest = hashlib.sha256("\x1e".join(learnt).encode("utf-8", "replace")).hexdigest()
        metrics = {"encoder": encoder.version, "posts": len(learnt)}
        write_result(Path(config.result), config, digest, config.seed, metrics)
    return calibration


if __name__ == "__main__":
    run(main, PRESETS)
