"""The parts of the stream clusterer (models/clustering.py puts them together).

config: every setting and why                            kernel: the attach and merge arithmetic
means: what blocks of posts are compared with            near: pairs that may have come near enough to merge
linkage: which clusters are joined, and in what order    cluster: one cluster's bookkeeping, decays, burst
lexicon: words beside meaning in a post's row            vectors: what a frame's must be
labels: words of any script, c-TF-IDF                    memory: where posts went, which ids are taken; bounded
live: the live clusters and what can happen to one       ages: what is asked of all of them, in arrays
applying: posts one by one, and when clusters are joined state: what is saved, in parts
events: which changes become events, and what they say   trail: long maps saved in segments
saving, restoring: the parts written and read            thresholds: start values without labels
unsettled: posts with alerts that wait to be told their cluster
"""
