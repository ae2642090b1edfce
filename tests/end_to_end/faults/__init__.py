"""Fault runs and soaks: `make faults` and `make soak`. Not part of `make test`."""
