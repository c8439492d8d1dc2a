//! Benchmarks, baselines and the load generator.
