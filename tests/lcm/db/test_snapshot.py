"""Reads that see the database at one moment."""

from threading import Thread

import pytest
from django.db import connection

from lcm.db.snapshot import consistent_reads
from lcm.models import Domain


def create_elsewhere(name, now):
    """Create a domain on a connection of its own."""

    def create():
        Domain.objects.create(name=name, created_at=now)
        connection.close()

    thread = Thread(target=create)
    thread.start()
    thread.join()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_block_does_not_see_later_changes(now):
    with consistent_reads():
        assert not Domain.objects.filter(name="later").exists()
        create_elsewhere("later", now)
        assert not Domain.objects.filter(name="later").exists()
    assert Domain.objects.filter(name="later").exists()


@pytest.mark.django_db
def test_a_block_inside_a_transaction_can_still_write(now):
    with consistent_reads():
        Domain.objects.create(name="here", created_at=now)
    assert Domain.objects.filter(name="here").exists()
