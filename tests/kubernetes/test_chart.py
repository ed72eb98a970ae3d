"""The Helm chart: it renders, refuses what is wrong, and a real API server takes what it renders."""

import json
import subprocess
import tomllib

import pytest
import yaml
from api import ApiError
from conftest import CHART, chart, eventually, helm

NAMESPACE = "chart"
MANY = (
    "replicas=3",
    "elastic.metadata=etcd",
    "elastic.etcdEndpoints={http://etcd-0:2379,http://etcd-1:2379}",
    "elastic.default.relays_max=4",
    "relays.nodeSelector.disk=fast",
    "relays.tolerations[0].key=relays",
    "relays.tolerations[0].operator=Exists",
    "relays.priorityClassName=high",
    "image.pullSecrets[0].name=registry",
    "persistence.storageClass=fast",
    "settings.amqp\\.heartbeat_s=30",
    "service.type=LoadBalancer",
    "service.annotations.a=b",
)
FRONT_ENDS = (
    "frontEnds.enabled=true",
    "frontEnds.cassandra.nodes={cassandra-0:9042,cassandra-1:9042}",
    "frontEnds.cassandra.existingSecret=cassandra",
    "frontEnds.cassandra.caSecret=authority",
    "frontEnds.autoscaling.requestsPerSecond=500",
    "frontEnds.autoscaling.responseMs=50",
    "frontEnds.settings.sqs\\.verify=always",
)


@pytest.fixture(scope="module")
def admin(cluster):
    api = cluster.admin()
    if not api.find(f"/api/v1/namespaces/{NAMESPACE}"):
        api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    return api


def test_helm_finds_nothing_to_complain_of():
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize("values", [(), MANY, ("persistence.enabled=false", "relays.maxUnavailable="), FRONT_ENDS])
def test_the_api_server_takes_all_that_is_rendered(admin, values):
    manifests = chart("quelea", NAMESPACE, *values)
    kinds = [manifest["kind"] for manifest in manifests]
    assert {"StatefulSet", "Service", "ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Secret"} <= set(kinds)
    for manifest in manifests:
        made = admin.apply(manifest, NAMESPACE, dry_run=True)
        assert made["metadata"]["name"] == manifest["metadata"]["name"]


def test_the_api_server_takes_a_pod_of_the_relays_template(admin):
    template = yaml.safe_load(files("quelea", *MANY)["relay-pod.yaml"])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "relay", **template["metadata"]}, **template}
    pod["metadata"] = {"name": "relay", **template["metadata"]}
    pod["spec"] = {key: value for key, value in template["spec"].items() if key != "priorityClassName"}
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    made = admin.post(pods, pod, dryRun="All", fieldValidation="Strict")
    assert made["spec"]["nodeSelector"] == {"disk": "fast"}


def test_the_broker_takes_the_configuration_and_the_template(site, tmp_path):
    site.broker.kill()
    rendered = files("quelea", "elastic.default.relays_max=4", "settings.amqp\\.heartbeat_s=30")
    config = tmp_path / "quelea.toml"
    config.write_text(rendered["quelea.toml"])
    template = tmp_path / "relay-pod.yaml"
    pod = yaml.safe_load(rendered["relay-pod.yaml"])
    pod["spec"]["containers"][0]["image"] = "quelea:test"
    template.write_text(yaml.safe_dump(pod))
    shown = subprocess.run(
        [site.broker.binary, "config", "--show", "--config", config], capture_output=True, text=True, timeout=60
    )
    assert shown.returncode == 0, shown.stderr
    settings = tomllib.loads(rendered["quelea.toml"])
    assert settings["elastic"]["kubernetes_site"] == "quelea" and settings["amqp"]["heartbeat_s"] == 30
    assert json.loads(settings["elastic"]["default"]) == {"relays_max": 4}
    site.start(
        QUELEA__ELASTIC__KUBERNETES_POD_TEMPLATE=str(template),
        QUELEA__ELASTIC__KUBERNETES_IMAGE="",
    )
    site.make("prices", replicas=1)
    ((_, made),) = site.settled("prices", 1).items()
    assert made["spec"]["securityContext"]["runAsNonRoot"] is True
    assert made["spec"]["containers"][0]["volumeMounts"] == [
        {"name": "key", "mountPath": "/etc/quelea/key", "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    assert {"name": "tmp", "emptyDir": {}} in made["spec"]["volumes"], "the policy `spill` writes there"


def test_a_broker_is_ready_when_it_has_read_its_log():
    for values in ((), MANY):
        [broker] = [one for one in chart("quelea", NAMESPACE, *values) if one["kind"] == "StatefulSet"]
        [container] = broker["spec"]["template"]["spec"]["containers"]
        assert container["readinessProbe"]["httpGet"] == {"path": "/", "port": "http"}
        assert {"name": "http", "containerPort": 15672} in container["ports"]


def test_front_ends_are_scaled_between_their_bounds():
    made = {one["kind"]: one for one in chart("quelea", NAMESPACE, *FRONT_ENDS) if one["metadata"]["name"] == "quelea-front-ends"}
    assert set(made) == {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler"}
    assert "replicas" not in made["Deployment"]["spec"], "they are the autoscaler's"
    scaler = made["HorizontalPodAutoscaler"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 10)
    assert [metric["type"] for metric in scaler["metrics"]] == ["Resource", "Pods", "Pods"]
    by_pod = {one["pods"]["metric"]["name"]: one["pods"]["target"] for one in scaler["metrics"][1:]}
    assert by_pod == {
        "quelea_sqs_requests_per_second": {"type": "AverageValue", "averageValue": "500"},
        "quelea_sqs_response_ms": {"type": "AverageValue", "averageValue": "50"},
    }
    settings = tomllib.loads(made["ConfigMap"]["data"]["quelea.toml"])
    assert settings["store"] == "cassandra" and settings["cassandra"]["nodes"] == ["cassandra-0:9042", "cassandra-1:9042"]
    assert settings["sqs"]["verify"] == "always"
    [container] = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert (settings["bdqs"]["fifo_bytes_max"], container["resources"]["limits"]["memory"]) == ("256MiB", "1Gi")
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    broker = next(one for one in chart("quelea", NAMESPACE) if one["kind"] == "Service" and one["metadata"]["name"] == "quelea")
    assert made["Service"]["spec"]["selector"].items() <= labels.items()
    assert not broker["spec"]["selector"].items() <= labels.items(), "the broker's Service does not reach them"
    fixed = chart("quelea", NAMESPACE, *FRONT_ENDS, "frontEnds.autoscaling.enabled=false")
    assert [one["spec"]["replicas"] for one in fixed if one["kind"] == "Deployment"] == [2]
    assert not [one for one in fixed if one["kind"] == "HorizontalPodAutoscaler"]
    assert not [one for one in chart("quelea", NAMESPACE) if one["kind"] == "Deployment"]


def test_directories_share_the_cassandra_of_the_front_ends():
    values = ("replicas=2", "elastic.metadata=cassandra", *FRONT_ENDS[1:4])
    made = {one["kind"]: one for one in chart("quelea", NAMESPACE, *values) if one["metadata"]["name"] == "quelea"}
    settings = tomllib.loads(made["ConfigMap"]["data"]["quelea.toml"])
    assert settings["elastic"]["metadata"] == "cassandra"
    assert settings["cassandra"]["nodes"] == ["cassandra-0:9042", "cassandra-1:9042"]
    assert settings["cassandra"]["password_file"] == "/etc/quelea/cassandra/password"
    pod = made["StatefulSet"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    user = next(one for one in container["env"] if one["name"] == "QUELEA__CASSANDRA__USER")
    assert user["valueFrom"]["secretKeyRef"] == {"name": "cassandra", "key": "username"}
    assert {"name": "cassandra", "mountPath": "/etc/quelea/cassandra", "readOnly": True} in container["volumeMounts"]
    assert settings["cassandra"]["ca_file"] == "/etc/quelea/cassandra-ca/ca.crt"
    secrets = {one["name"]: one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one}
    assert (secrets["cassandra"], secrets["cassandra-ca"]) == ("cassandra", "authority")


def files(release, *values):
    """What the chart's ConfigMap for the broker has."""
    return next(
        one["data"]
        for one in chart(release, NAMESPACE, *values)
        if one["kind"] == "ConfigMap" and one["metadata"]["name"] == release
    )


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("replicas=2", "replicas: more than one need elastic.metadata: etcd or cassandra"),
        ("replicas=0", "replicas"),
        ("elastic.metadata=etcd", "elastic.etcdEndpoints: is empty"),
        ("elastic.metadata=cassandra", "frontEnds.cassandra.nodes: is empty"),
        ("elastic.metadata=paper", "elastic.metadata"),
        ("elastic.drainMs=1", "drainMs"),
        ("admin.user=guest", "admin.user"),
        ("relays.port=0", "relays.port"),
        ("frontEnds.enabled=true", "frontEnds.cassandra.nodes: is empty"),
        ("frontEnds.cassandra.nodes={cassandra}", "frontEnds.cassandra.nodes"),
        ("frontEnds.replicas=0", "frontEnds.replicas"),
        ("frontEnds.autoscaling.responseMs=60001", "frontEnds.autoscaling.responseMs"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(value, told):
    with pytest.raises(AssertionError) as refused:
        chart("quelea", NAMESPACE, value)
    message = str(refused.value).replace("/", ".").replace("'", "")
    assert told in message, message


def test_a_release_whose_name_is_no_site_is_refused():
    with pytest.raises(AssertionError, match="at most 40 letters"):
        chart("q" * 41, NAMESPACE)


def test_the_roles_rights_are_the_least(cluster, site):
    """What the account may do is what the directory does; the other tests show that it is enough."""
    account = cluster.account(site.namespace, "quelea")
    for path in (
        f"/api/v1/namespaces/{site.namespace}/secrets",
        f"/api/v1/namespaces/{site.namespace}/configmaps",
        "/api/v1/pods",
        "/api/v1/namespaces/default/pods",
        "/apis/quelea.dev/v1alpha1/elasticqueues",
    ):
        with pytest.raises(ApiError) as refused:
            account.get(path)
        assert refused.value.code == 403
    site.make("prices", replicas=1)
    ((name, _),) = site.settled("prices", 1).items()
    with pytest.raises(ApiError, match="cannot patch resource"):
        account.patch(f"{site.pods_path}/{name}", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(ApiError, match="cannot patch resource"):
        account.patch(f"{site.queues_path}/prices", {"spec": {"replicas": 2}})
    eventually("its status, which it may write", lambda: site.condition("prices", "Accepted"))
