"""What a worker has loaded is not looked through for garbage again, and garbage is found all the same."""

from __future__ import annotations

import subprocess
import sys

SHOW = """
import gc, weakref
from streams.worker.garbage import keep_what_is_loaded

class Post:
    pass

loaded = [Post() for _ in range(1000)]
keep_what_is_loaded()
assert gc.get_freeze_count() > 1000 and not any(isinstance(one, Post) for one in gc.get_objects())
gone, found = weakref.ref(post := Post()), []
post.itself = post
del post
while gone():
    found.append([])
    assert len(found) < 100_000
print(len(found))
"""


def test_a_cycle_is_found_after_some_ten_thousand_new_objects():
    done = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    assert 9_000 < int(done.stdout) < 11_000
