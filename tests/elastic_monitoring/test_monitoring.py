"""Three hosts that cross a threshold within ten seconds are an event; two are none."""

import pytest
from harness.elastic.broker import wait_for
from monitoring import HIGH, hosts_of

pytestmark = pytest.mark.process


@pytest.fixture
def alerts(start):
    """What is printed, and two aggregators that share the samples by metric."""
    printed = start("alerts").wait_until_said("waiting for alerts")
    for take in ("memory.", "cpu.,network."):
        start("aggregate", "--take", take).wait_until_said("taking")
    return printed


def test_three_hosts_of_a_group_are_an_event_and_are_named(alerts, hosts):
    web = hosts("web", 5)
    for host in web[:3]:
        host.use_memory(HIGH)
    [alert] = wait_for("an alert", alerts.lines)
    assert hosts_of(alert) == ["web-1", "web-2", "web-3"]
    assert (alert["metric"], alert["group"], alert["threshold"]) == ("memory", "web", 0.9)
    values = [crossing["value"] for crossing in alert["crossings"]]
    assert values == pytest.approx([HIGH] * 3)
    times = [crossing["unix_ms"] for crossing in alert["crossings"]]
    assert times == sorted(times) and times[-1] - times[0] <= 10_000


def test_two_hosts_of_a_group_are_none(alerts, start, hosts):
    # A stricter aggregator, with a queue of alerts of its own, shows when the two crossings have come.
    names = ("--alerts", "monitoring.pairs")
    pairs = start("alerts", *names).wait_until_said("waiting for alerts")
    start("aggregate", "--hosts", 2, *names).wait_until_said("taking")
    db, later = hosts("db", 4), hosts("later", 3)
    for host in db[:2]:
        host.use_memory(HIGH)
    pair = wait_for("an alert of two", pairs.lines)[0]
    assert hosts_of(pair) == ["db-1", "db-2"]
    # Those two had come when these are sent: an alert about them would be the first.
    for host in later:
        host.use_memory(HIGH)
    found = wait_for("an alert of three", alerts.lines)
    assert [alert["group"] for alert in found] == ["later"]


def test_an_event_that_two_aggregators_find_is_printed_once(start, hosts):
    printed = start("alerts").wait_until_said("waiting for alerts")
    for own in ("left", "right"):
        start("aggregate", "--take", f"memory.both.,memory.{own}.").wait_until_said("taking")
    for group in ("both", "left", "right"):
        for host in hosts(group, 3):
            host.use_memory(HIGH)
        # An aggregator's alerts come in their order: with its own one, that of both has come.
        wait_for(f"an alert of {group}", lambda: group in [alert["group"] for alert in printed.lines()])
    assert sorted(alert["group"] for alert in printed.lines()) == ["both", "left", "right"]


def test_alerts_come_after_a_relay_was_killed(queues, alerts, hosts):
    rack = hosts("rack", 3)
    wait_for("probes", lambda: len(queues.producers("monitoring.samples")) >= 3)
    before = {relay["id"] for relay in queues.relays("monitoring.samples")}
    queues.signal_relay("monitoring.samples")
    wait_for("another relay", lambda: {relay["id"] for relay in queues.relays_up("monitoring.samples")} - before)
    for host in rack:
        host.use_memory(HIGH)
    [alert] = wait_for("an alert", alerts.lines)
    assert hosts_of(alert) == ["rack-1", "rack-2", "rack-3"]


def test_a_stop_ends_in_order_and_a_wrong_option_is_named(start, alerts):
    assert alerts.stop() == 0
    wrong = start("aggregate", "--threshold", "memory=much")
    assert wrong.process.wait(30) == 2
    assert '"much" is no number' in wrong.said.read_text()
