"""Relays as pods: they come with a queue's use and its load, go when we choose them, and are replaced."""

import threading

from conftest import DRAIN_MS, eventually

# From the end of a drain to its pod's.
GRACE_MORE_S = 5


class Stream:
    """A producer that publishes so many messages a second, and a listener that has to have them all."""

    def __init__(self, producer, per_s):
        self.producer, self.per_s, self.sent = producer, per_s, 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopped.wait(1 / self.per_s):
            self.producer.publish("a", b"x" * 100)
            self.sent += 1

    def stop(self):
        self.stopped.set()
        self.thread.join()
        return self.sent


def use(site, queue):
    """A producer and a listener that are connected."""
    producer, listener = site.producer(queue), site.listener(queue)
    producer.wait_for_relay(timeout_s=60)
    listener.wait_for_relays(timeout_s=60)
    return producer, listener


def check_complete(listener, counts, after_a_kill=False):
    """Each producer's messages are there. They came once, unless a relay was killed: what it had not acknowledged is
    sent again, and the listener knows it by its number."""
    listener.wait_for_messages(sum(counts.values()), timeout_s=60)
    assert listener.duplicates == 0 or after_a_kill
    for producer, count in counts.items():
        assert listener.seen[producer] == set(range(count))


def test_the_first_use_of_a_queue_makes_a_pod_and_its_relay_serves(site):
    producer, listener = use(site, "prices")
    producer.publish("a", b"1")
    assert listener.wait_for_messages(1)[0][2] == [b"a", b"1"]

    ((name, pod),) = site.settled("prices", 1).items()
    labels, owner = pod["metadata"]["labels"], pod["metadata"]["ownerReferences"][0]
    assert labels["quelea.dev/queue"] == "prices" and labels["app.kubernetes.io/instance"] == "quelea"
    assert (owner["kind"], owner["name"]) == ("ElasticQueue", "prices")
    assert owner["uid"] == site.resource("prices")["metadata"]["uid"]
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["spec"]["terminationGracePeriodSeconds"] == DRAIN_MS // 1_000 + GRACE_MORE_S
    assert site.queue("prices")["relays"][0]["address"] == f"{pod['status']['podIP']}:5680"
    assert name.startswith("prices-r1-")


def test_a_queue_whose_name_kubernetes_does_not_allow_has_pods_all_the_same(site):
    producer, listener = use(site, "Märkte/EU")
    producer.publish("a", b"1")
    listener.wait_for_messages(1)
    ((_, pod),) = site.pods().items()
    assert pod["metadata"]["annotations"]["quelea.dev/queue-name"] == "Märkte/EU"
    (resource,) = site.api.items(site.queues_path)
    assert resource["spec"]["queue"] == "Märkte/EU"


def test_load_makes_more_pods(site):
    site.make("prices", sla={"messagesInPerSMax": 100, "relaysMax": 3}, acknowledge="delivered")
    listener = site.listener("prices")
    producers = [site.producer("prices") for _ in range(4)]
    for producer in producers:
        producer.wait_for_relay(timeout_s=60)
    listener.wait_for_relays()
    streams = [Stream(producer, per_s=40) for producer in producers]
    try:
        pods = site.settled("prices", 3)
        listener.wait_for_relays(3)
        eventually(
            "producers at several relays",
            lambda: len({one["relay"] for one in site.management.get("/api/elastic/queues/prices/producers")}) > 1,
        )
    finally:
        counts = {stream.producer.id: stream.stop() for stream in streams}
    assert len(pods) == 3
    check_complete(listener, counts)


def test_scale_in_ends_the_pod_that_was_chosen_when_it_is_empty(site):
    site.make("prices", replicas=3, acknowledge="delivered")
    pods = site.settled("prices", 3)
    listener = site.listener("prices")
    producers = [site.producer("prices") for _ in range(3)]
    for producer in producers:
        producer.wait_for_relay()
    listener.wait_for_relays(3)
    streams = [Stream(producer, per_s=20) for producer in producers]
    try:
        site.scale("prices", 2)
        # The directory says which one; its pod, and no other, is being deleted while the relay is emptied.
        reason = eventually("a drain", lambda: site.events("prices", "drain"))
        (chosen,) = eventually("a termination", lambda: site.kubelet.happened("terminated"))
        left = site.settled("prices", 2)
    finally:
        counts = {stream.producer.id: stream.stop() for stream in streams}
    assert reason and chosen[0] in pods and chosen[0] not in left and set(left) < set(pods)
    # The grace is what is left of the drain's time, and a little more.
    assert DRAIN_MS // 1_000 < chosen[1] <= DRAIN_MS // 1_000 + GRACE_MORE_S
    eventually("the pod's end", lambda: chosen[0] not in site.pods(alive=False))
    # It was emptied in time, and ended by itself.
    assert site.kubelet.happened("ended") == [(chosen[0], 0)] and site.kubelet.happened("killed") == []
    check_complete(listener, counts)


def test_a_relay_that_is_not_left_in_time_is_killed_at_the_deadline(site):
    site.make("prices", replicas=2)
    site.settled("prices", 2)
    # Told to end, and deaf: a SIGSTOP in its place.
    ((first, _), (second, _)) = site.settled("prices", 2).items()
    deaf = site.kubelet.process_of(first)
    deaf.send_signal(19)
    site.api.delete(f"{site.pods_path}/{first}", grace_s=2)
    eventually("its kill", lambda: (first, 9) in site.kubelet.happened("killed"))
    pods = site.settled("prices", 2)
    assert first not in pods and second in pods


def test_a_pod_that_somebody_deletes_is_emptied_and_replaced(site):
    site.make("prices", acknowledge="delivered")
    producer, listener = use(site, "prices")
    ((name, _),) = site.settled("prices", 1).items()
    stream = Stream(producer, per_s=50)
    try:
        eventually("some messages", lambda: stream.sent > 20)
        site.api.delete(f"{site.pods_path}/{name}")
        (replacement,) = eventually("another pod", lambda: set(site.pods("prices")) - {name})
        eventually("the first one's end", lambda: name not in site.pods(alive=False))
        listener.wait_for_relays()
    finally:
        sent = stream.stop()
    assert site.kubelet.happened("killed") == [] and (name, 0) in site.kubelet.happened("ended")
    assert set(site.settled("prices", 1)) == {replacement}
    check_complete(listener, {producer.id: sent})
    assert listener.gaps == []


def test_a_relay_that_is_killed_is_replaced_and_its_producers_go_on(site):
    site.make("prices", acknowledge="delivered", replicas=2)
    site.settled("prices", 2)
    producer, listener = use(site, "prices")
    listener.wait_for_relays(2)
    stream = Stream(producer, per_s=50)
    try:
        eventually("some messages", lambda: stream.sent > 20)
        victim = site.relays("prices")[producer.relay]
        site.kubelet.process_of(victim).kill()
        pods = eventually("another pod", lambda: len(new := site.pods("prices")) == 2 and victim not in new and new)
        sent = stream.sent
        eventually("more messages", lambda: stream.sent > sent + 20)
    finally:
        sent = stream.stop()
    assert victim not in pods
    check_complete(listener, {producer.id: sent}, after_a_kill=True)
    assert len(site.events("prices", "failover")) == 1
    assert any("signal 9" in reason for reason in site.events("prices", "ended")), site.events("prices", "ended")


def test_a_pod_that_never_comes_up_is_told_and_replaced(site):
    site.broker.kill()
    site.start(QUELEA__ELASTIC__KUBERNETES_IMAGE="quelea:missing", QUELEA__ELASTIC__REGISTER_MS_MAX="2000")
    site.make("prices", replicas=1)
    eventually("the cause in the log", lambda: "ErrImagePull: no image quelea:missing" in log(site))
    reasons = eventually("a failed start", lambda: site.events("prices", "start-failed"), site.told("prices"))
    assert "has not registered within 2000 ms" in reasons[0]
    site.broker.kill()
    site.start(QUELEA__ELASTIC__KUBERNETES_IMAGE="quelea:test", QUELEA__ELASTIC__REGISTER_MS_MAX="40000")
    site.settled("prices", 1)


def log(site):
    return site.broker.log_tail(1_000_000)


def test_a_stopped_directory_that_ends_its_relays_leaves_no_pod(site):
    site.broker.kill()
    site.start(QUELEA__ELASTIC__RELAYS_ON_EXIT="stop")
    site.make("prices", replicas=2)
    site.settled("prices", 2)
    assert site.broker.terminate() == 0
    eventually("no pod", lambda: not site.pods(alive=False))
    assert site.kubelet.happened("killed") == []
