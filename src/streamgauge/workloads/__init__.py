"""Workloads: parameters, dimensions, deterministic events and the reference answer of each use case."""
