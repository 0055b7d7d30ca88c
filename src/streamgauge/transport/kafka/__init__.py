"""Kafka: the second way from generator to system under test, and for its output."""
