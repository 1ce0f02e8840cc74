"""Choose one of many: exponential, noisy max, permute-and-flip, top-k, quantiles."""
