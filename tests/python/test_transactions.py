"""The tx class."""

import pytest
from harness.amqp.peer import closes, drain, get, publish, queue


@pytest.fixture
def transaction(peer):
    channel = peer.channel(confirms=False)
    channel.tx_select()
    return channel


def test_published_messages_appear_with_the_commit(peer, transaction):
    watcher = peer.channel()
    created = queue(watcher)
    for number in range(3):
        publish(transaction, created, number)
    assert get(watcher, created) is None
    transaction.tx_commit()
    assert drain(watcher, created) == ["0", "1", "2"]


def test_a_rollback_forgets_what_was_published(transaction):
    created = queue(transaction)
    publish(transaction, created, "forgotten")
    transaction.tx_rollback()
    publish(transaction, created, "kept")
    transaction.tx_commit()
    assert drain(transaction, created) == ["kept"]


def test_acknowledgements_count_with_the_commit(peer, transaction):
    created = queue(transaction)
    publish(transaction, created, "m")
    transaction.tx_commit()
    transaction.basic_ack(get(transaction, created, auto_ack=False)[0].delivery_tag)
    transaction.tx_rollback()
    transaction.basic_recover(requeue=True)
    method, _, body = get(transaction, created, auto_ack=False)
    assert (body, method.redelivered) == ("m", True)
    transaction.basic_ack(method.delivery_tag)
    transaction.tx_commit()
    transaction.basic_recover(requeue=True)
    assert get(transaction, created) is None


def test_a_rejection_counts_with_the_commit(transaction):
    dead = queue(transaction)
    created = queue(transaction, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    publish(transaction, created, "m")
    transaction.tx_commit()
    transaction.basic_reject(get(transaction, created, auto_ack=False)[0].delivery_tag, requeue=False)
    assert get(transaction, dead) is None
    transaction.tx_commit()
    assert drain(transaction, dead) == ["m"]


def test_a_transaction_that_is_not_committed_dies_with_its_channel(peer):
    connection = peer.connection()
    watcher = connection.channel()
    created = queue(watcher)
    channel = connection.channel()
    channel.tx_select()
    publish(channel, created, "m")
    channel.close()
    assert get(watcher, created) is None


def test_commit_may_be_empty_and_repeated(transaction):
    for _ in range(3):
        transaction.tx_commit()
        transaction.tx_rollback()
    transaction.tx_select()
    assert transaction.is_open


@pytest.mark.parametrize("act", ["tx_commit", "tx_rollback"])
def test_without_a_transaction_there_is_nothing_to_end(peer, act):
    channel = peer.channel(confirms=False)
    with closes(406, "PRECONDITION_FAILED - channel is not transactional"):
        getattr(channel, act)()


def test_a_confirming_channel_cannot_become_transactional(channel):
    with closes(406, "PRECONDITION_FAILED - cannot switch from confirm to tx mode"):
        channel.tx_select()


def test_a_transactional_channel_cannot_become_confirming(transaction):
    with closes(406, "PRECONDITION_FAILED - cannot switch from tx to confirm mode"):
        transaction.confirm_delivery()


def test_an_error_in_a_transaction_closes_the_channel_at_once(transaction, name):
    with closes(404, f"NOT_FOUND - no exchange '{name()}' in vhost '/'"):
        publish(transaction, "k", "m", name())
        transaction.tx_commit()


def test_a_big_transaction_is_all_there(transaction):
    created = queue(transaction)
    for number in range(2_000):
        publish(transaction, created, number)
    transaction.tx_commit()
    assert drain(transaction, created) == [str(number) for number in range(2_000)]
