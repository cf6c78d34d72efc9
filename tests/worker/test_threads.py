"""A worker's native pools are as wide as its settings say, unless the environment says otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys

SHOW = """
import json, os, sys
import numpy
from streams.worker.threads import limit_native_threads
limit_native_threads(int(sys.argv[1]))
import scipy.linalg, faiss
from threadpoolctl import threadpool_info
numpy.ones((600, 600)) @ numpy.ones((600, 600))
from models.encoders.load import load_encoder
load_encoder(None).encode(["water needed in the camp"] * 300)
print(json.dumps([sorted({pool["num_threads"] for pool in threadpool_info()}), os.environ.get("TOKENIZERS_PARALLELISM"),
                  len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0]))
"""


def shown(threads: int, **environment: str) -> list:
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS") and k != "TOKENIZERS_PARALLELISM"}
    done = subprocess.run(
        [sys.executable, "-c", SHOW, str(threads)], env=kept | environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_one_thread_a_pool_and_no_pool_for_the_tokenizer():
    widths, tokenizer, _ = shown(1)
    assert widths == [1] and tokenizer == "false"


def test_the_environment_has_the_last_word():
    widths, tokenizer, _ = shown(1, OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2", TOKENIZERS_PARALLELISM="true")
    assert max(widths) <= 2 and tokenizer == "true"
    assert shown(2)[1] is None
