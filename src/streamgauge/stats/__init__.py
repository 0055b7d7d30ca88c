"""Statistics: latency buckets and quantiles, trends with confidence intervals, the end of the warm-up."""
