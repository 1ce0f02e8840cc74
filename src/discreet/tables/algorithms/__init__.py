"""The private algorithms, free of queries and prices: noise, quantiles, limits, thresholds."""
