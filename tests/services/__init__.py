"""Real services for the tests: Apache Kafka, Redis, Chromium. Each says what to install where it is missing."""
