class Missing(Exception):
    """Something the tests need is not on this machine and could not be had; says what to do."""
