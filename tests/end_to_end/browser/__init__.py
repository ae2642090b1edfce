"""Browser tests; a package, so that their control plane ends with its last test."""
