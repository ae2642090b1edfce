class Missing(Exception):  # noqa: N818 (it is a finding, not a fault)
    """Something the tests need is not on this machine and could not be had; says what to do."""
