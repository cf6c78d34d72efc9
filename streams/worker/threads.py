"""How many native threads a worker's libraries may use.

numpy's BLAS, OpenMP and the tokenizer each keep a pool as wide as the machine and let it wait busily between two small
jobs: a worker at 60 posts/s spent .76 of a core waiting. Its stages run beside each other already, and so do workers;
one thread a pool is the default, and to use more cores one starts more workers.
"""

from __future__ import annotations

import os

from threadpoolctl import threadpool_limits

__all__ = ["VARIABLES", "limit_native_threads"]

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


def limit_native_threads(threads: int) -> None:
    """Hold every pool of this process, and of those it starts, to so many threads. What the environment sets stays.

    Call it before the first post: the tokenizer's pool is made once, when it is first used. Libraries that are loaded
    already are told, the others read the variables.
    """
    for name in VARIABLES:
        os.environ.setdefault(name, str(threads))
    if threads == 1:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # no pool at all
    for api, name in (("blas", "OPENBLAS_NUM_THREADS"), ("openmp", "OMP_NUM_THREADS")):
        wanted = os.environ[name].split(",")[0]  # OpenMP allows a number for each level of nesting
        threadpool_limits(limits=int(wanted) if wanted.isdecimal() else threads, user_api=api)
