"""Fixtures of a pool that a test drives by hand."""
