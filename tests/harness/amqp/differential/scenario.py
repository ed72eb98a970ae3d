"""Random scenarios: lists of steps that say nothing of what a broker has answered, so that both brokers get the same ones, and
so that a part of a list is a scenario too."""

import random

QUEUES = [f"q{n}" for n in range(1, 5)]
EXCHANGES = {"direct": "x1", "fanout": "x2", "topic": "x3", "headers": "x4"}
CONNECTIONS = 2
CHANNELS = 2
STEPS = 40
HOUR_MS = 3_600_000
KEYS = ["a", "a.b", "a.b.c", "b", ""]
PATTERNS = ["a", "a.*", "a.#", "#", "*.b", "#.c", "b", ""]
MATCHES = [{}, {"x-match": "all", "h": 1}, {"x-match": "any", "h": 1, "g": "t"}, {"h": 2}, {"x-match": "any-with-x", "x-h": 1}]
HEADERS = [None, None, {"h": 1}, {"h": 2, "g": "t"}, {"x-h": 1}]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.messages = 0
        self.tags = 0
        # Some faults and features would end or drown every scenario if all had them.
        self.is_expiring = self.random.random() < 0.25
        self.is_faulty = self.random.random() < 0.5
        self.has_transactions = self.random.random() < 0.25

    def steps(self):
        steps = [self.declare_queue(queue) for queue in self.random.sample(QUEUES, self.random.randint(1, 3))]
        steps += [self.declare_exchange() for _ in range(self.random.randint(0, 3))]
        steps += [self.bind() for _ in range(self.random.randint(0, 4))]
        weights = self.weights()
        makers = list(weights)
        while len(steps) < STEPS:
            [maker] = self.random.choices(makers, [weights[one] for one in makers])
            steps.append(maker())
        return steps

    def weights(self):
        faults = 1 if self.is_faulty else 0
        tx = 1 if self.has_transactions else 0
        return {
            self.publish: 40,
            self.get: 10,
            self.consume: 10,
            self.settle: 25,
            self.cancel: 3,
            self.declare_queue: 4,
            self.declare_exchange: 2,
            self.bind: 4,
            self.unbind: 2,
            self.bind_exchange: 2,
            self.qos: 4,
            self.recover: 2,
            self.purge: 1,
            self.delete_queue: 1.5,
            self.delete_exchange: 1,
            self.select_confirms: 0 if tx else 3,
            self.select_transactions: 2 * tx,
            self.end_transaction: 10 * tx,
            self.close_channel: 1.5,
            self.close_connection: 1,
            self.fault: 3 * faults,
        }

    # -- what a step has ------------------------------------------------------------------------

    def step(self, op, **words):
        connection, channel = self.random.randrange(CONNECTIONS), self.random.randrange(1, CHANNELS + 1)
        return {"op": op, "at": (connection, channel), **words}

    def maybe(self, part):
        return self.random.random() < part

    def queue(self):
        return self.random.choice(QUEUES)

    def exchange(self):
        return self.random.choice(list(EXCHANGES.values()))

    def queue_arguments(self):
        arguments = {}
        for make in (self.lengths, self.lives, self.dead_letters, self.others):
            if self.maybe(0.35):
                arguments |= make()
        return arguments

    def lengths(self):
        limit = [{"x-max-length": self.random.randint(0, 3)}, {"x-max-length-bytes": self.random.choice([0, 8, 20])}]
        overflow = [{}, {"x-overflow": "drop-head"}, {"x-overflow": "reject-publish"}, {"x-overflow": "reject-publish-dlx"}]
        return self.random.choice(limit) | self.random.choice(overflow)

    def lives(self):
        return {"x-message-ttl": self.random.choice([0, 1]) if self.is_expiring else HOUR_MS}

    def dead_letters(self):
        exchange = {"x-dead-letter-exchange": self.random.choice(["", "", self.exchange(), "nowhere"])}
        key = self.random.choice([{}, {"x-dead-letter-routing-key": self.queue()}, {"x-dead-letter-routing-key": "a.b"}])
        return exchange | key

    def others(self):
        return self.random.choice([{"x-max-priority": 3}, {"x-single-active-consumer": True}, {"x-expires": HOUR_MS}, {"x-queue-mode": "lazy"}])

    # -- topology -------------------------------------------------------------------------------

    def declare_queue(self, queue=None):
        flags = self.random.choice([{"durable": True}] * 5 + [{}, {"auto_delete": True}, {"exclusive": True}, {"durable": True, "auto_delete": True}])
        if self.maybe(0.1):
            return self.step("queue.declare", queue=queue or self.queue(), passive=True, arguments={})
        return self.step("queue.declare", queue=queue or self.queue(), **flags, arguments=self.queue_arguments())

    def declare_exchange(self):
        kind = self.random.choice(list(EXCHANGES))
        flags = self.random.choice([{"durable": True}] * 4 + [{}, {"auto_delete": True}, {"internal": True}])
        alternate = {"alternate-exchange": self.exchange()} if self.maybe(0.2) else {}
        return self.step("exchange.declare", exchange=EXCHANGES[kind], type=kind, **flags, arguments=alternate)

    def binding(self):
        exchange = self.exchange()
        key = self.random.choice(PATTERNS if exchange == EXCHANGES["topic"] else KEYS)
        arguments = self.random.choice(MATCHES) if exchange == EXCHANGES["headers"] else {}
        return {"exchange": exchange, "key": key, "arguments": arguments}

    def bind(self):
        return self.step("queue.bind", queue=self.queue(), **self.binding())

    def unbind(self):
        return self.step("queue.unbind", queue=self.queue(), **self.binding())

    def bind_exchange(self):
        return self.step(self.random.choice(["exchange.bind"] * 3 + ["exchange.unbind"]), destination=self.exchange(), **self.binding())

    def delete_queue(self):
        flag = self.random.choice([{}, {}, {"if_unused": True}, {"if_empty": True}])
        return self.step("queue.delete", queue=self.queue(), **flag)

    def delete_exchange(self):
        return self.step("exchange.delete", exchange=self.exchange(), if_unused=self.maybe(0.5))

    def purge(self):
        return self.step("queue.purge", queue=self.queue())

    # -- messages -------------------------------------------------------------------------------

    def publish(self):
        self.messages += 1
        exchange = "" if self.maybe(0.6) else self.exchange()
        words = {"exchange": exchange, "key": self.random.choice(KEYS) if exchange else self.queue()}
        properties = {}
        if self.maybe(0.6):
            properties["delivery_mode"] = 2
        if self.maybe(0.15):
            properties["priority"] = self.random.randint(0, 5)
        if (headers := self.random.choice(HEADERS)) is not None:
            properties["headers"] = dict(headers)
        if self.maybe(0.05):
            properties.setdefault("headers", {})[self.random.choice(["CC", "BCC"])] = [self.queue()]
        if self.maybe(0.15):
            properties["expiration"] = self.random.choice(["0", "1"]) if self.is_expiring else str(HOUR_MS)
        size = self.random.choice([0, 0, 4, 16])
        return self.step("basic.publish", **words, mandatory=self.maybe(0.15), body=f"m{self.messages}" + "." * size, properties=properties)

    def get(self):
        return self.step("basic.get", queue=self.queue(), no_ack=self.maybe(0.3))

    def consume(self):
        self.tags += 1
        arguments = {"x-priority": self.random.randint(-1, 2)} if self.maybe(0.1) else {}
        flags = {"no_ack": self.maybe(0.25), "exclusive": self.maybe(0.05)}
        return self.step("basic.consume", queue=self.queue(), tag=f"c{self.tags}", **flags, arguments=arguments)

    def cancel(self):
        return self.step("basic.cancel", tag=f"c{self.random.randint(1, max(1, self.tags))}")

    def settle(self):
        op = self.random.choice(["basic.ack"] * 3 + ["basic.nack"] * 2 + ["basic.reject"])
        words = {"pick": self.random.randrange(100)}
        if op != "basic.reject":
            words["multiple"] = self.maybe(0.2)
        if op != "basic.ack":
            words["requeue"] = self.maybe(0.6)
        return self.step(op, **words)

    def recover(self):
        return self.step("basic.recover")

    def qos(self):
        return self.step("basic.qos", count=self.random.choice([0, 1, 1, 2, 3]), whole_channel=self.maybe(0.3))

    # -- channels -------------------------------------------------------------------------------

    def select_confirms(self):
        return self.step("confirm.select")

    def select_transactions(self):
        return self.step("tx.select")

    def end_transaction(self):
        return self.step(self.random.choice(["tx.commit"] * 3 + ["tx.rollback"]))

    def close_channel(self):
        return self.step("channel.close")

    def close_connection(self):
        return self.step("connection.close")

    # -- what is refused ------------------------------------------------------------------------

    def fault(self):
        return self.random.choice(
            [
                lambda: self.step("basic.ack", pick=None, multiple=False),
                lambda: self.step("basic.publish", exchange="nowhere", key="", mandatory=False, body="lost", properties={}),
                lambda: self.step("basic.get", queue="nowhere", no_ack=False),
                lambda: self.step("basic.consume", queue="nowhere", tag="c0", no_ack=False, exclusive=False, arguments={}),
                lambda: self.step("queue.bind", queue="nowhere", exchange="x1", key="", arguments={}),
                lambda: self.step("queue.declare", queue=self.queue(), passive=True, arguments={}),
                lambda: self.step("queue.declare", queue="amq.mine", arguments={}),
                lambda: self.step("queue.declare", queue=self.queue(), durable=True, arguments={"x-max-length": -1}),
                lambda: self.step("queue.declare", queue=self.queue(), durable=True, arguments={"x-message-ttl": "long"}),
                lambda: self.step("exchange.delete", exchange="amq.direct", if_unused=False),
                lambda: self.step("exchange.declare", exchange=self.exchange(), type="direct", durable=True, arguments={}),
                lambda: self.step("basic.publish", exchange="", key=self.queue(), mandatory=False, body="x", properties={"expiration": "soon"}),
                lambda: self.step("tx.commit"),
            ]
        )()


def scenario(seed):
    return Generator(seed).steps()
