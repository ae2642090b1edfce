"""End to end: a package, so that its control plane ends with its last test."""
