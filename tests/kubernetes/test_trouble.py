"""Directories that restart, API servers that are away, watches that are too old, rights that are missing."""

from conftest import eventually
from test_relays import Stream, check_complete, log, use


def test_a_directory_that_restarts_adopts_its_pods_and_starts_none_twice(site):
    site.make("prices", replicas=2, acknowledge="delivered")
    before = site.settled("prices", 2)
    producer, listener = use(site, "prices")
    listener.wait_for_relays(2)
    stream = Stream(producer, per_s=50)
    try:
        eventually("some messages", lambda: stream.sent > 20)
        for _ in range(2):
            site.broker.restart_after_kill()
            site.management.http = site.broker.http
            after = site.settled("prices", 2)
            assert {name: pod["metadata"]["uid"] for name, pod in after.items()} == {
                name: pod["metadata"]["uid"] for name, pod in before.items()
            }
        sent = stream.sent
        eventually("more messages", lambda: stream.sent > sent + 20)
    finally:
        sent = stream.stop()
    assert sorted(name for name, _ in site.kubelet.happened("started")) == sorted(before)
    check_complete(listener, {producer.id: sent})


def test_pods_that_ended_unseen_are_replaced_and_strangers_are_left_alone(site):
    site.make("prices", replicas=2)
    before = site.settled("prices", 2)
    stranger = {
        "metadata": {"name": "stranger", "labels": {"app.kubernetes.io/name": "quelea-relay"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "other:1"}]},
    }
    site.api.post(site.pods_path, {"apiVersion": "v1", "kind": "Pod", **stranger})
    site.broker.kill()
    lost, kept = before
    site.kubelet.process_of(lost).kill()
    eventually("its end", lambda: site.pods(alive=False)[lost]["status"]["phase"] == "Failed")
    site.start()
    after = site.settled("prices", 2)
    assert kept in after and lost not in after
    assert "stranger" in site.pods(alive=False)


def test_while_the_api_server_is_away_relays_and_clients_go_on(site):
    site.make("prices", replicas=2, acknowledge="delivered")
    site.settled("prices", 2)
    producer, listener = use(site, "prices")
    listener.wait_for_relays(2)
    stream = Stream(producer, per_s=50)
    try:
        site.cluster.kill_apiserver()
        eventually("the directory's notice of it", lambda: "cannot be watched" in log(site))
        sent = stream.sent
        eventually("messages", lambda: stream.sent > sent + 50)
        # A client that comes now is served, and a relay that dies is left by its clients.
        late = site.producer("prices")
        late.wait_for_relay()
        late.publish("a", b"late")
        late.wait_until_acknowledged()
        victim = site.relays("prices")[producer.relay]
        site.kubelet.process_of(victim).kill()
        sent = stream.sent
        eventually("messages by another relay", lambda: producer.acknowledged > sent + 50, patience_s=60)
    finally:
        if site.cluster.apiserver.poll() is not None:
            site.cluster.start()
        sent = stream.stop()
    # Afterwards the lost one is replaced, and nothing is there twice.
    pods = site.settled("prices", 2)
    assert victim not in pods
    check_complete(listener, {producer.id: sent, late.id: 1}, after_a_kill=True)


def test_a_watch_that_is_too_old_begins_anew_and_misses_nothing(site):
    site.make("prices", replicas=2)
    before = site.settled("prices", 2)
    site.wire.cut()
    eventually("the directory's notice of it", lambda: "cannot be watched" in log(site))
    lost, kept = before
    site.kubelet.process_of(lost).kill()
    eventually("its end", lambda: site.pods(alive=False)[lost]["status"]["phase"] == "Failed")
    site.api.delete(f"{site.pods_path}/{lost}", grace_s=0)
    site.edit("prices", replicas=3)
    # An API server that starts anew knows nothing older than what etcd has kept.
    site.cluster.kill_apiserver()
    site.cluster.compact()
    site.cluster.start()
    site.wire.mend()
    eventually("410", lambda: any(word in log(site) for word in ("Expired", "Gone", "410")), lambda: log(site))
    after = site.settled("prices", 3)
    assert kept in after and lost not in after


def test_without_its_rights_the_directory_says_which_one_is_missing(site):
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{site.namespace}/roles/quelea"
    role = site.api.get(path)
    site.make("first", replicas=1)
    site.settled("first", 1)
    rules = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb != "create"]} if "pods" in rule["resources"] else rule
        for rule in role["rules"]
    ]
    site.api.patch(path, {"rules": rules})
    site.make("second", replicas=1)
    reasons = eventually("a failed start", lambda: site.events("second", "start-failed"), site.told("second"))
    assert 'cannot create resource "pods"' in reasons[0], reasons
    assert 'cannot create resource "pods"' in log(site)
    # What runs goes on, and with its right back it starts what was asked for.
    producer, listener = use(site, "first")
    producer.publish("a", b"1")
    listener.wait_for_messages(1)
    site.api.patch(path, {"rules": role["rules"]})
    site.settled("second", 1)
