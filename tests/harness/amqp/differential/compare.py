"""The same scenario on two brokers, or on one now and another before."""

import json
import time

from harness.amqp.differential.player import BARRIER, Player
from harness.broker import Broker
from harness.management import Management, segment

QUEUE_FIELDS = ("name", "durable", "auto_delete", "exclusive", "arguments")
COUNT_FIELDS = ("messages", "messages_ready", "messages_unacknowledged", "consumers")
EXCHANGE_FIELDS = ("name", "type", "durable", "auto_delete", "internal", "arguments")
RETURNS = ("basic.nack", "basic.reject", "basic.recover", "channel.close", "connection.close", "tx.commit")
# Its `properties_key` is left out: of arguments either broker has a hash of its own kind.
BINDING_FIELDS = ("source", "destination", "destination_type", "routing_key", "arguments")

# RabbitMQ counts every five seconds: what it says for longer than that is no answer of before.
LOOK_S = 0.5
LOOKS_ALIKE = 13
SETTLE_S = 60


def make_vhost(broker, vhost):
    api = Management(broker.http)
    api.put_vhost(vhost)
    api.permit(vhost, "guest")


def played(broker, vhost, steps, counts=False):
    """What was seen at each step, and what the management API says at the end, of its counts too if they are asked for."""
    player = Player(broker, vhost, has_short_lives(steps), reads_log=isinstance(broker, Broker))
    try:
        # As JSON has it, so that what was recorded is the same.
        return json.loads(json.dumps([*player.play(steps), said(player, counts)]))
    finally:
        player.close()


def has_short_lives(steps):
    """Whether some message expires while the scenario is played."""
    return any(step.get("properties", {}).get("expiration") == "1" or step.get("arguments", {}).get("x-message-ttl") == 1 for step in steps)


def difference(steps, ours, theirs):
    """None, or the number of the first step after which they differ, and what either has seen of it."""
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine != other:
            is_known = number < len(steps) and is_accepted(steps[: number + 1], mine, other)
            return None if is_known else (number, mine, other)
    return None


def is_accepted(steps, ours, theirs):
    """What COMPARE.md lists and a scenario may come to; after it both brokers have gone ways of their own."""
    return is_refused_commit(steps[-1], ours, theirs) or is_dropped_return(steps, ours, theirs)


def is_refused_commit(step, ours, theirs):
    where = f"{step['at'][0]}.{step['at'][1]}"
    is_refused = ours["events"].get(where, {}).get("closed") == [406, 90, 20]
    return step["op"] == "tx.commit" and is_refused and theirs["reply"] is True


def is_dropped_return(steps, ours, theirs):
    """What comes back to a queue at its limit goes to a consumer that waits, or is dropped before."""

    def deliveries(seen):
        return sum(len(got) for kinds in seen["events"].values() for kind, got in kinds.items() if kind.startswith("delivered"))

    declared = [step["arguments"] for step in steps if step["op"] == "queue.declare"]
    has_limit = any("x-max-length" in one or "x-max-length-bytes" in one for one in declared)
    is_return = steps[-1]["op"] in RETURNS or any("closed" in kinds for kinds in ours["events"].values())
    return has_limit and is_return and deliveries(ours) > deliveries(theirs)


class Pair:
    """Two brokers with a virtual host for it."""

    def __init__(self, ours, theirs, vhost):
        self.brokers, self.vhost = [ours, theirs], vhost
        for broker in self.brokers:
            make_vhost(broker, vhost)

    def played(self, steps, counts=False):
        return [played(broker, self.vhost, steps, counts) for broker in self.brokers]

    def shortest(self, steps, found, counts=False):
        """The steps that it takes to see a difference, and what they show. It may have been seen once only."""
        steps = steps[: found[0] + 1]
        at = len(steps)
        while at > 0:
            at -= 1
            fewer = steps[:at] + steps[at + 1 :]
            if (with_fewer := difference(fewer, *self.played(fewer, counts))) is not None:
                found = with_fewer
                steps = fewer[: found[0] + 1]
                at = min(at, len(steps))
        return steps, found


def said(player, counts):
    """What the management API says, once that stays the same."""
    seen = topology(player, counts)
    if not counts or isinstance(player.broker, Broker):
        return seen
    alike, end = 1, time.monotonic() + SETTLE_S
    while alike < LOOKS_ALIKE and time.monotonic() < end:
        time.sleep(LOOK_S)
        before, seen = seen, topology(player, counts)
        is_counted = all(queue["messages"] is not None for queue in seen["queues"])
        alike = alike + 1 if seen == before and is_counted else 1
    return seen


def topology(player, counts):
    api, vhost = Management(player.broker.http), segment(player.vhost)

    def rows(kind, fields):
        shown = [{field: one.get(field) for field in fields} for one in api.get(f"/api/{kind}/{vhost}")]
        own = [one for one in shown if player.prefix in (text := json.dumps(one)) and player.prefix + BARRIER not in text]
        return sorted((player.plain(one) for one in own), key=lambda one: json.dumps(one, sort_keys=True))

    queues = rows("queues", (*QUEUE_FIELDS, *COUNT_FIELDS) if counts else QUEUE_FIELDS)
    return {"queues": queues, "exchanges": rows("exchanges", EXCHANGE_FIELDS), "bindings": rows("bindings", BINDING_FIELDS)}


def described(steps, found):
    number, ours, theirs = found
    lines = [f"{at:3} {json.dumps(step)}" for at, step in enumerate(steps)]
    return "\n".join([*lines, f"after step {number}", f"ours:   {json.dumps(ours)}", f"theirs: {json.dumps(theirs)}"])
