"""Nobody takes a cluster's face: neither who grinds the ids of his posts nor who posts more often."""

import zlib

from models.clusters.cluster import Cluster, Rates, member_of
from models.posts import parse_post
from models.records import Post

KEPT = 12


def post(post_id: str, author: str, text: str = "help at the mosque") -> Post:
    line = f'{{"id": "{post_id}", "text": "{text}", "author": "{author}"}}'.encode()
    return parse_post(line, seen_at=1.7e9, author_key=b"a secret of the workers")


def cluster_of(posts):
    cluster = Cluster("c", Rates(0.0), 0.0, 0.0, 0, 0.0)
    for one in posts:
        cluster.keep_example(member_of(one, (), b""), KEPT)
    return [member.post_id for member in cluster.examples]


def ground(count: int) -> list[str]:
    """Ids of the lowest CRC-32: what used to rank them."""
    return sorted((f"evil/{n}" for n in range(20_000)), key=lambda i: zlib.crc32(i.encode()))[:count]


def test_ids_ground_to_rank_low_take_no_more_than_their_share_of_the_examples():
    real = [post(f"real/{n}", f"r{n}", f"help at the mosque on street {n}") for n in range(200)]
    hostile = [post(i, f"h{n}", "donate at scam.example") for n, i in enumerate(ground(12))]
    taken = [i for i in cluster_of(real + hostile) if i.startswith("evil/")]
    assert len(taken) <= 3  # 12 of 212 posts: less than one is expected, twelve it was


def test_an_author_has_one_example_however_often_he_posts():
    many = [post(f"evil/{n}", "one", f"donate at scam.example {n}") for n in range(300)]
    shown = cluster_of(many + [post(f"real/{n}", f"r{n}", f"we are trapped {n}") for n in range(20)])
    assert sum(i.startswith("evil/") for i in shown) == 1 and len(shown) == KEPT


def test_the_examples_do_not_depend_on_the_order_in_which_an_author_posts():
    posts = [post(f"p/{n}", f"a{n % 5}", f"text {n}") for n in range(60)]
    assert cluster_of(posts) == cluster_of(posts[::-1])
