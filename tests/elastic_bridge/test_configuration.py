"""Bridges that cannot be: the broker does not start, and says which field has which value."""

import pytest
from harness.broker import Broker, BrokerError, binary_path


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"FEED": "[{exchange = 'x', through = 'q'}]"}, "bridge.feed.queue has to be given"),
        (
            {"FEED": "[{exchange = 'x', through = 'q', queue = ''}]"},
            'bridge.feed.queue = "" has 0 bytes, and may have 1 to 255',
        ),
        (
            {"FEED": "[{exchange = 'x', through = 'q', queue = 'e', prefetch = 0}]"},
            "bridge.feed.prefetch = 0 is not within 1 to 65535",
        ),
        (
            {"FEED": "[{exchange = 'x', through = 'q', queue = 'e'}, {exchange = 'y', through = 'q', queue = 'f'}]"},
            'bridge.feed.through = "q" of virtual host "/" is in more than one feed',
        ),
        (
            {"FEED": "[{exchange = 'x', through = 'q', queue = 'e', binding_keys = []}]"},
            "bridge.feed.binding_keys has 0 entries, and may have 1 to 10000",
        ),
        ({"FEED": "[{exchang = 'x'}]"}, 'no key "bridge.feed.exchang" (did you mean "bridge.feed.exchange"?)'),
        ({"DELIVERY": "[{exchange = 'x'}]"}, "bridge.delivery.queue has to be given"),
        ({"DELIVERY": "[{queue = 'q', prefixes = 7}]"}, "bridge.delivery.prefixes = 7 is not a list of texts"),
        ({"KEEP_LISTEN": "somewhere"}, 'bridge.keep_listen = "somewhere" is not an address'),
        ({"KEEP_LISTEN": "0.0.0.0:0"}, "bridge.keep_listen = \"0.0.0.0:0\" is reached from other machines"),
        ({"DIRECTORIES": "here"}, 'bridge.directories = "here" is not an address HOST:PORT'),
    ],
)
def test_it_is_told_what_is_wrong(bridged, settings, told):
    environment = {f"QUELEA__BRIDGE__{key}": value for key, value in settings.items()}
    with pytest.raises(BrokerError) as refused:
        bridged(environment=environment)
    assert told in str(refused.value)


def test_nothing_is_kept_without_a_keeper(bridged):
    with pytest.raises(BrokerError) as refused:
        bridged(environment={"QUELEA__BRIDGE__KEEP_LISTEN": ""}, default={"keep": "archive"})
    told = 'elastic.default: keep = "archive" has no effect: bridge.keep_listen and bridge.keep_advertise are both empty'
    assert told in str(refused.value)


def test_a_feed_needs_a_directory():
    environment = {"QUELEA__BRIDGE__FEED": "[{exchange = 'x', through = 'q', queue = 'e'}]"}
    with pytest.raises(BrokerError) as refused, Broker(binary_path(), environment=environment):
        pass  # The harness gives a broker no directory unless it is asked to.
    told = "bridge.feed needs a directory: bridge.directories and elastic.listen are both empty"
    assert told in str(refused.value)
