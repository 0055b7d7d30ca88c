"""Workloads: parameters, dimensions, deterministic events and the reference result of each use case."""
