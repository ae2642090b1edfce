"""The checks of deploy/ detect errors."""

import pytest

from tests.deploy.commands import problems


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["gunicorn-2", "lcm.wsgi:application"], "gunicorn-2 is not installed"),
        (["gunicorn", "-c", "python:lcm.gunicorn", "lcm.wsgi:application"], "no module lcm.gunicorn"),
        (["gunicorn", "lcm.rsgi:application"], "no module lcm.rsgi"),
        (["celery", "-A", "lcm.tasks.celery", "worker"], "no module lcm.tasks.celery"),
        (["python", "-m", "lcm.steering"], "no module lcm.steering"),
        (["python", "manage.py", "migrat"], "no command migrat"),
        (["sh", "-c", "mkdir /tmp/x && exec beater"], "beater is not installed"),
    ],
)
def test_a_missing_part_is_named(argv, message):
    assert message in "; ".join(problems(argv))
