"""The papers whose workloads and experiments streamgauge has, by the names that it prints.

Karimov et al., *Benchmarking Distributed Stream Data Processing Systems* (ICDE 2018); van Dongen et al. on the latency
of the stages of a pipeline (2018); *Theodolite*, scalability benchmarks of stream processing engines (2021); and
scalability benchmarks for Kafka Streams (2020).
"""

KARIMOV = "Karimov 2018"
VAN_DONGEN = "van Dongen 2018"
THEODOLITE = "Theodolite 2021"
SCALABILITY = "Kafka Streams study 2020"
