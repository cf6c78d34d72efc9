"""The parts of the stream clusterer (models/clustering.py puts them together).

config: every setting and why                            kernel: the attach and merge arithmetic
lexicon: words beside meaning in a post's row            cluster: one cluster's bookkeeping, decays, burst
labels: words of any script, c-TF-IDF                    memory: where posts went, which ids are taken; bounded
book: the live clusters and what can happen to one       news: which changes become events, and what they say
state: the snapshot's format                             thresholds: start values without labels
"""
