"""Pure numbers: buckets and quantiles, trends with honest intervals, the end of warm-up."""
