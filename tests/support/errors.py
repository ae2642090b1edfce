class Missing(Exception):
    """A program that the tests need is missing; the message says how to get it."""
