"""The custom resource: what users ask for in it, what it shows, and how others scale it."""

import pytest
from api import ApiError
from conftest import eventually


def test_a_resource_defines_a_queue_and_its_edits_change_it(site):
    site.make("prices", sla={"relaysMin": 2, "relaysMax": 5, "bytesInPerSMax": 1_000_000}, slow="disconnect")
    site.settled("prices", 2)
    definition = site.queue("prices")["definition"]
    assert (definition["relays_min"], definition["relays_max"]) == (2, 5)
    assert (definition["bytes_in_per_s_max"], definition["slow"]) == (1_000_000, "disconnect")
    accepted = eventually("Accepted", lambda: site.condition("prices", "Accepted"))
    assert (accepted["status"], accepted["observedGeneration"]) == ("True", 1)

    site.edit("prices", sla={"relaysMin": 3}, slow=None)
    site.settled("prices", 3)
    definition = site.queue("prices")["definition"]
    assert (definition["relays_min"], definition["relays_max"]) == (3, 5)
    assert definition["slow"] == "drop_oldest"
    eventually("the newer generation", lambda: site.condition("prices", "Accepted")["observedGeneration"] == 2)


def test_a_deleted_resource_takes_its_queue_and_its_pods_with_it(site):
    site.make("prices", replicas=2)
    site.settled("prices", 2)
    site.api.delete(f"{site.queues_path}/prices")
    eventually("no queue and no pod", lambda: site.queue("prices") is None and not site.pods(alive=False))
    assert site.kubelet.happened("killed") == []


def test_a_deleted_queue_takes_its_first_use_resource_and_leaves_a_users_own(site):
    site.producer("used").wait_for_relay(timeout_s=60)
    site.make("asked-for", replicas=1)
    site.settled("asked-for", 1)
    for client in site.clients:
        client.close()
    for queue in ("used", "asked-for"):
        site.management.delete(f"/api/elastic/queues/{queue}")
    eventually("no resource", lambda: site.resource("used") is None, lambda: (site.resource("used"), site.broker.log_tail()), 15)
    eventually("no pod", lambda: not site.pods(alive=False))
    eventually("no relay shown", lambda: site.resource("asked-for")["status"]["replicas"] == 0)
    assert site.condition("asked-for", "Ready")["status"] == "False"


@pytest.mark.parametrize(
    ("spec", "field", "told"),
    [
        ({"sla": {"relaysMin": 3, "relaysMax": 2}}, "spec.sla", "sla.relaysMin: must be at most sla.relaysMax"),
        ({"replicas": 9, "sla": {"relaysMax": 8}}, "spec", "replicas: must be at most sla.relaysMax"),
        ({"replicas": 1, "sla": {"relaysMin": 2}}, "spec", "replicas: must be at least sla.relaysMin"),
        ({"replicas": 0}, "spec.replicas", "should be greater than or equal to 1"),
        ({"sla": {"relaysMax": 4097}}, "spec.sla.relaysMax", "should be less than or equal to 4096"),
        ({"slow": "sometimes"}, "spec.slow", 'supported values: "drop_newest", "drop_oldest"'),
        ({"queue": "x" * 256}, "spec.queue", "may not be more than 255"),
        ({"ringBytesMax": -1}, "spec.ringBytesMax", "should be greater than or equal to 0"),
    ],
)
def test_the_api_server_refuses_what_contradicts_itself_and_names_the_field(site, spec, field, told):
    with pytest.raises(ApiError) as refused:
        site.make("prices", **spec)
    assert refused.value.code == 422
    causes = refused.value.status["details"]["causes"]
    assert any(cause["field"] == field and told in cause["message"] for cause in causes), causes


def test_a_queue_is_not_renamed(site):
    site.make("prices", queue="Prices")
    with pytest.raises(ApiError, match="queue: a queue is not renamed"):
        site.edit("prices", queue="others")


def test_what_only_the_directory_can_see_is_refused_by_a_condition(site):
    site.make("prices", acknowledge="stored")
    accepted = eventually("Accepted", lambda: site.condition("prices", "Accepted"))
    assert (accepted["status"], accepted["reason"]) == ("False", "Invalid")
    assert "acknowledge" in accepted["message"] and "keep" in accepted["message"]
    assert site.queue("prices") is None

    # Mended, it is taken; a bad edit later leaves the queue as it was.
    site.edit("prices", acknowledge="delivered")
    site.settled("prices", 1)
    eventually("Accepted", lambda: site.condition("prices", "Accepted")["status"] == "True")
    site.edit("prices", acknowledge="stored", sla={"relaysMin": 2})
    eventually("not accepted", lambda: site.condition("prices", "Accepted")["status"] == "False")
    assert site.queue("prices")["definition"]["relays_min"] == 1


def test_a_queue_that_nobody_can_keep_is_refused_as_over_http(site):
    site.broker.kill()
    site.start(QUELEA__BRIDGE__KEEP_LISTEN="")
    site.make("prices", keep="orders")
    accepted = eventually("Accepted", lambda: site.condition("prices", "Accepted"))
    assert (accepted["status"], accepted["reason"]) == ("False", "Invalid")
    assert "keep" in accepted["message"] and "no keeper" in accepted["message"]
    assert site.queue("prices") is None


def test_of_two_resources_of_one_queue_the_older_one_holds(site):
    site.make("first", queue="prices", replicas=1)
    site.settled("prices", 1)
    site.make("second", queue="prices", replicas=2)
    accepted = eventually("a verdict", lambda: site.condition("second", "Accepted"))
    assert accepted["status"] == "False" and "ElasticQueue first" in accepted["message"]
    assert len(site.settled("prices", 1)) == 1
    site.api.delete(f"{site.queues_path}/first")
    eventually("the second one's turn", lambda: site.condition("second", "Accepted")["status"] == "True")
    site.settled("prices", 2)


def test_the_status_shows_relays_clients_and_conditions(site):
    site.make("prices", replicas=2)
    producer, listener = site.producer("prices"), site.listener("prices")
    producer.wait_for_relay(timeout_s=60)
    listener.wait_for_relays(2, timeout_s=60)
    site.settled("prices", 2)

    def look():
        status = site.resource("prices").get("status", {})
        shown = (status.get("relays", {}).get("up"), status.get("producers"), status.get("listeners"))
        return status if shown == (2, 1, 1) else None

    status = eventually("the status", look, site.told("prices"))
    assert status["replicas"] == 2 and status["relays"] == {"starting": 0, "up": 2, "draining": 0, "dead": 0}
    conditions = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
    assert conditions == {
        "Accepted": ("True", "Defined"),
        "Ready": ("True", "RelaysUp"),
        "WithinBudget": ("True", "WithinBudget"),
    }
    assert status["queueGeneration"] >= 1
    # The selector finds exactly the queue's pods, as an autoscaler needs it.
    found = site.api.items(site.pods_path, labelSelector=status["selector"])
    assert {pod["metadata"]["name"] for pod in found} == set(site.pods("prices"))

    producer.close()
    listener.close()
    eventually(
        "no client",
        lambda: (site.resource("prices")["status"]["producers"], site.resource("prices")["status"]["listeners"])
        == (0, 0),
    )


def test_the_scale_subresource_shows_and_sets_the_count(site):
    site.make("prices", replicas=1, sla={"relaysMax": 3})
    site.settled("prices", 1)
    scale = site.api.get(f"{site.queues_path}/prices/scale")
    assert scale["kind"] == "Scale" and scale["spec"]["replicas"] == 1
    site.scale("prices", 3)
    site.settled("prices", 3)
    eventually(
        "the count", lambda: site.api.get(f"{site.queues_path}/prices/scale")["status"]["replicas"] == 3
    )
    definition = site.queue("prices")["definition"]
    assert (definition["relays_min"], definition["relays_max"]) == (3, 3)
    with pytest.raises(ApiError, match="replicas: must be at most sla.relaysMax"):
        site.scale("prices", 4)
    # Given back to the planner.
    site.edit("prices", replicas=None)
    eventually("the bounds of the agreement", lambda: site.queue("prices")["definition"]["relays_min"] == 1)
    assert site.queue("prices")["definition"]["relays_max"] == 3
