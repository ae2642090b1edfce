"""Live statistics of running kernels, exported by controllers and queried from Prometheus in batches."""
