"""Kafka, by every client but Faust: connecting, the topics, the compacted ones that are followed, and how far workers
are behind.
"""
