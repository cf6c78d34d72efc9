"""The whole pipeline on Apache Kafka and Redis, beside others with the same stages (`python -m tests.flow`)."""
