"""Benchmarks: what the product's work costs, as ratios against a floor taken in the same run."""
