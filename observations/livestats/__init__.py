"""Live statistics of running kernels: what controllers export, asked of Prometheus for many at once."""
