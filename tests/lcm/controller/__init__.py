"""Tests of the lablet controller."""
