"""In a browser: a package, so that its control plane ends with its last test."""
