from lcm.supervisor.child_process import RestartBackoff


def test_the_delay_doubles_from_one_to_thirty_seconds() -> None:
    backoff = RestartBackoff()
    assert [backoff.after_run(0.5) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_steady_run_resets_the_delay() -> None:
    backoff = RestartBackoff()
    for _ in range(4):
        backoff.after_run(0.5)
    assert backoff.after_run(59.9) == 16
    assert backoff.after_run(60) == 1
    assert backoff.after_run(0.5) == 2
