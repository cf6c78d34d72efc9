"""Every Prometheus metric of a worker, and the one of the dashboard, in one table (docs: deploy/METRICS.md is printed
from it; a test holds them equal).

Label sets are closed: stages, reasons, levels, kinds, query ids, languages of the queries. Nothing from a post ever
becomes a label.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

__all__ = [
    "HEALTH_LEVELS",
    "REGISTRY",
    "alert_seconds",
    "alerts",
    "biggest_cluster_share",
    "canary_rollbacks",
    "cluster_events",
    "clusters",
    "context_share",
    "encode_posts",
    "encode_seconds",
    "frames",
    "health",
    "labels",
    "lag",
    "loop_lag_seconds",
    "matches_left_out",
    "posts",
    "put_by",
    "queries",
    "query_matches",
    "ready",
    "rejects",
    "restated",
    "shadow_dropped",
    "show_bars",
    "show_health",
    "show_versions",
    "stage_seconds",
    "taken_up",
    "takeover_failures",
    "takeover_seconds",
    "takeover_trouble",
    "trial_alerts",
    "trial_encode_seconds",
    "trial_errors",
    "trial_posts",
    "waiting_seconds",
]

REGISTRY = CollectorRegistry()
HEALTH_LEVELS = ("live", "late", "down")  # of streams/view/health.py

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


def _counter(name: str, doc: str, *labels: str) -> Counter:
    return Counter(name, doc, labels, registry=REGISTRY)


def _gauge(name: str, doc: str, *labels: str) -> Gauge:
    return Gauge(name, doc, labels, registry=REGISTRY)


def _histogram(name: str, doc: str, *labels: str, buckets: tuple = _SECONDS) -> Histogram:
    return Histogram(name, doc, labels, registry=REGISTRY, buckets=buckets)


frames = _counter("crisis_frames_total", "Frames processed and acknowledged", "stage")
posts = _counter("crisis_posts_total", "Posts by what became of them at a stage", "stage", "outcome")
rejects = _counter("crisis_rejects_total", "Records refused, by reason", "reason")
alerts = _counter("crisis_alerts_total", "Alerts published, by level, kind and status", "level", "kind", "status")
matches_left_out = _counter(
    "crisis_matches_left_out_total", "Matches too many for one record of posts.matched; their alerts were published"
)
query_matches = _counter("crisis_query_matches_total", "Matches by query (ids come from the queries topic)", "query")
alert_probability = _gauge(
    "crisis_alert_probability",
    "Probability from which a query alerts now, where it follows the stream (others: all without a bar of their own)",
    "query",
)
held_back = _gauge(
    "crisis_held_back",
    "Readings of the last hour that a query's alerts an hour held back as suggestions; never those read as urgent",
    "query",
)
cluster_events = _counter("crisis_cluster_events_total", "Cluster changes published", "event")
clusters = _gauge("crisis_clusters", "Clusters held by this worker's clusterer")
biggest_cluster_share = _gauge("crisis_biggest_cluster_share", "Share of clustered posts in the biggest cluster")
stage_seconds = _histogram("crisis_stage_seconds", "Time to process one batch of frames", "stage")
encode_seconds = _histogram("crisis_encode_seconds", "Time of one encoder call")
encode_posts = _histogram(
    "crisis_encode_posts", "Posts in one encoder call", buckets=(1, 5, 10, 25, 50, 100, 250, 1000)
)
alert_seconds = _histogram(
    "crisis_alert_seconds",
    "From entering posts.raw to the alert being acknowledged",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
context_share = _gauge("crisis_context_share", "Share of the posts that are read in context as they come; 1 = all")
put_by = _counter(
    "crisis_put_by_posts_total",
    "Posts only skimmed, to be read in context later, by why, language of the queries and platform (others: other)",
    "reason",
    "lang",
    "source",
)
taken_up = _counter("crisis_taken_up_posts_total", "Posts that were put by and have been read in context since")
waiting_seconds = _gauge("crisis_waiting_seconds", "Age of the oldest post put by that this worker has found waiting")
lag = _gauge("crisis_lag_frames", "Frames behind the end of the topic, this worker's partitions", "topic")
loop_lag_seconds = _gauge("crisis_event_loop_lag_seconds", "How late the event loop wakes up")
queries = _gauge("crisis_queries", "Active queries")
labels = _gauge("crisis_labels", "Labels that people gave")
encoder = _gauge(
    "crisis_encoder_info",
    "1 for the encoder version in use, and its version in the registry",
    "version",
    "registry_version",
)
staged_encoder = _gauge(
    "crisis_staged_encoder_info", "1 for the encoder version on trial, if one is loaded", "version", "registry_version"
)
takeover_seconds = _histogram("crisis_takeover_seconds", "From starting to fetch a version until it could serve")
takeover_failures = _counter(
    "crisis_takeover_failures_total", "Attempts to load a version that failed; the old one served on"
)
takeover_trouble = _gauge("crisis_takeover_trouble", "1 while this worker lacks a version, queries or labels")
restated = _counter(
    "crisis_restated_posts_total", "Posts embedded again because their version is not loaded here", "stage"
)
trial_posts = _counter(
    "crisis_trial_posts_total", "Posts by arm of a trial (current, staged, shadow, beside) and language", "arm", "lang"
)
trial_alerts = _counter("crisis_trial_alert_posts_total", "Posts of trial_posts that alerted", "arm", "lang")
trial_errors = _counter("crisis_trial_errors_total", "Posts a version failed on while on trial", "arm")
trial_encode_seconds = _counter("crisis_trial_encode_seconds_total", "Encode time in a trial", "arm")
shadow_dropped = _counter("crisis_shadow_dropped_posts_total", "Posts not scored in the shadow: it was behind")
canary_rollbacks = _counter("crisis_canary_rollbacks_total", "Canaries this worker found out of their band")
ready = _gauge("crisis_ready", "1 when the worker is ready")
health = _gauge(
    "crisis_health",
    "1 for how the whole is: live, late or down, as the page and `crisis status` say; at /metrics of the dashboard",
    "level",
)


def show_health(level: str) -> None:
    """Show that the whole is at this level, one of HEALTH_LEVELS."""
    for one in HEALTH_LEVELS:
        health.labels(one).set(one == level)


def show_versions(current: tuple[str, str], staged: tuple[str, str] | None) -> None:
    """Show these two versions, each (the encoder's id, its version in the registry), and no others."""
    for gauge, version in ((encoder, current), (staged_encoder, staged)):
        gauge.clear()
        if version is not None:
            gauge.labels(*version).set(1)


def show_bars(bars: Mapping[str, float], held: Mapping[str, int]) -> None:
    """Show these live bars (query id → probability) and what was held back (query id → readings), and no others."""
    for gauge, shown in ((alert_probability, bars), (held_back, held)):
        gauge.clear()
        for query, value in shown.items():
            gauge.labels(query).set(value)


def table() -> str:
    """The documented table, Markdown."""
    rows = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for collector in REGISTRY._collector_to_names:  # prometheus_client has no public way to list collectors
        name = collector._name + ("_total" if isinstance(collector, Counter) else "")
        kind = type(collector).__name__.lower()
        rows.append(f"| `{name}` | {kind} | {', '.join(collector._labelnames) or '–'} | {collector._documentation} |")
    return "\n".join(rows) + "\n"


def document() -> str:
    """deploy/METRICS.md."""
    return (
        "# Metrics of a worker\n\nServed at `/metrics` (`worker.web_port`, default 6066) in Prometheus format; "
        "`crisis_health` at that of the dashboard.\nPrinted by `python -m streams.metrics`; a test holds the two "
        "equal.\n\n" + table()
    )


if __name__ == "__main__":
    print(document(), end="")
