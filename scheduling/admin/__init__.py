"""Django admin of pools, slots, reservations and scheduling records."""

from scheduling.admin import pools, records, reservations, slots

__all__ = ["pools", "records", "reservations", "slots"]
