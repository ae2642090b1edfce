"""Capacity in django-admin; Django loads this once all models are there."""

from scheduling.admin import pools, records, reservations, slots

__all__ = ["pools", "records", "reservations", "slots"]
