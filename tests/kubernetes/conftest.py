"""A control plane for all tests, and for each one a namespace with a Quelea that manages its pods."""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))

from api import PODS, QUEUES  # noqa: E402
from cluster import Cluster, Wire  # noqa: E402
from kubelet import Kubelet  # noqa: E402

from harness.broker import Broker, binary_path  # noqa: E402
from harness.elastic.producer import Producer  # noqa: E402
from harness.elastic.wire import Listener  # noqa: E402
from harness.management import Management, Refused  # noqa: E402
from harness.ports import free_port  # noqa: E402

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "quelea"
IMAGE = "quelea:test"
PAUSE_S = 0.1
PATIENCE_S = 60
DRAIN_MS = 20_000
_numbers = itertools.count(1)


def helm(*arguments) -> str:
    """What Helm prints."""
    done = subprocess.run([os.environ["QUELEA_HELM"], *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def chart(release, namespace, *values):
    """The chart's manifests."""
    options = [word for value in values for word in ("--set", value)]
    rendered = helm("template", release, str(CHART), "--kube-version", "1.34.4", "--namespace", namespace, *options)
    return [manifest for manifest in yaml.safe_load_all(rendered) if manifest]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    programs = (Path(os.environ[name]) for name in ("QUELEA_KUBE_APISERVER", "QUELEA_ETCD"))
    with Cluster(tmp_path_factory.mktemp("cluster"), *programs) as started:
        (path,) = (CHART / "crds").glob("*.yaml")
        definition = yaml.safe_load(path.read_text())
        started.admin().apply(definition, None)
        name = definition["metadata"]["name"]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"

        def is_served():
            conditions = started.admin().get(path).get("status", {}).get("conditions") or []
            return ("Established", "True") in [(one["type"], one["status"]) for one in conditions]

        eventually("ElasticQueues are served", is_served)
        yield started


@pytest.fixture
def site(cluster, tmp_path):
    """A namespace with the chart's rights, a kubelet, and a running directory."""
    with Site(cluster, tmp_path) as made:
        made.start()
        yield made


class Site:
    """One namespace, and the Quelea outside of it that has the rights of the chart's service account there."""

    def __init__(self, cluster, directory):
        self.cluster, self.directory = cluster, directory
        self.api = cluster.admin()
        self.namespace = f"test-{next(_numbers)}"
        self.pods_path, self.queues_path = PODS.format(self.namespace), QUEUES.format(self.namespace)
        self.address = f"127.0.0.1:{free_port()}"
        self.clients = []
        self.broker = self.kubelet = self.wire = None

    def __enter__(self):
        self.api.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        for manifest in chart("quelea", self.namespace):
            if manifest["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
                self.api.apply(manifest, self.namespace)
        self.wire = Wire(self.cluster.port)
        account = self.cluster.account(self.namespace, "quelea")
        config = self.cluster.kubeconfig(self.directory / "kubeconfig", account, self.namespace, self.wire.port)
        self.kubelet = Kubelet(self.api, self.namespace, {IMAGE: binary_path()}, self.directory / "pods")
        environment = {
            "KUBECONFIG": str(config),
            "QUELEA__ELASTIC__LISTEN": self.address,
            "QUELEA__ELASTIC__OPEN_BEYOND_LOOPBACK": "true",
            "QUELEA__ELASTIC__PROVIDER": "kubernetes",
            "QUELEA__ELASTIC__KUBERNETES_IMAGE": IMAGE,
            "QUELEA__ELASTIC__DRAIN_MS_MAX": str(DRAIN_MS),
            "QUELEA__ELASTIC__REGISTER_MS_MAX": "40000",
            "QUELEA__ELASTIC__RELAYS_ON_EXIT": "keep",
            "QUELEA__STOP_TIMEOUT_MS": "300",
        }
        self.broker = Broker(binary_path(), self.directory / "quelea", environment)
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        self.broker.close()
        self.wire.close()
        self.kubelet.stop()

    def start(self, **environment):
        """Starts the directory, with other settings if they are given."""
        self.broker.environment.update(environment)
        self.broker.start()
        self.management = Management(self.broker.http)
        return self

    # -- clients ------------------------------------------------------------------------------

    def producer(self, queue) -> Producer:
        self.clients.append(Producer(self.address, queue))
        return self.clients[-1]

    def listener(self, queue) -> Listener:
        self.clients.append(Listener(self.address, queue))
        return self.clients[-1]

    # -- what Kubernetes has ------------------------------------------------------------------

    def pods(self, queue=None, alive=True):
        """Pods of relays by their name; only those that run, and are not being deleted, unless `alive` is false."""
        selector = {"labelSelector": f"quelea.dev/queue={queue}"} if queue else {}
        pods = {pod["metadata"]["name"]: pod for pod in self.api.items(self.pods_path, **selector)}
        if not alive:
            return pods
        return {
            name: pod
            for name, pod in pods.items()
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def resource(self, name):
        """An ElasticQueue, or None."""
        return self.api.find(f"{self.queues_path}/{name}")

    def make(self, name, **spec):
        body = {"apiVersion": "quelea.dev/v1alpha1", "kind": "ElasticQueue", "metadata": {"name": name}, "spec": spec}
        return self.api.post(self.queues_path, body)

    def edit(self, name, **spec):
        return self.api.patch(f"{self.queues_path}/{name}", {"spec": spec})

    def scale(self, name, replicas):
        return self.api.patch(f"{self.queues_path}/{name}/scale", {"spec": {"replicas": replicas}})

    def condition(self, name, kind):
        """A condition of an ElasticQueue, or None."""
        conditions = (self.resource(name) or {}).get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), None)

    # -- what the directory says --------------------------------------------------------------

    def queue(self, name):
        """The queue, or None."""
        try:
            return self.management.get(f"/api/elastic/queues/{name}")
        except Refused as refused:
            if refused.status == 503:
                return {"relays": []}  # It is being taken over, or removed.
            if refused.status != 404:
                raise
            return None

    def relays(self, queue, state="up"):
        """The pods of relays in a state, by the relay's number."""
        shown = self.queue(queue) or {"relays": []}
        return {relay["id"]: relay["handle"] for relay in shown["relays"] if relay["state"] == state}

    def events(self, queue, kind):
        """The reasons of what was decided, in order."""
        events = self.management.get(f"/api/elastic/events?queue={queue}")
        return [event["reason"] for event in events if event["kind"] == kind]

    def settled(self, queue, count):
        """Waits until the queue has so many relays up, no others, and each its pod; answers the pods."""

        def look():
            shown = self.queue(queue)
            states = [relay["state"] for relay in shown["relays"]] if shown else []
            pods = self.pods(queue)
            handles = {relay["handle"] for relay in shown["relays"]} if shown else set()
            return pods if states == ["up"] * count and handles == set(pods) else None

        return eventually(f"{count} relays of {queue}", look, self.told(queue))

    def told(self, queue):
        def tell():
            pods = {
                name: (pod["status"].get("phase"), pod["metadata"].get("deletionTimestamp"))
                for name, pod in self.pods(queue, alive=False).items()
            }
            return f"{self.queue(queue)}\n{pods}\n{self.broker.log_tail(3_000)}"

        return tell


def eventually(what, look, tell=None, patience_s=PATIENCE_S):
    """Waits until `look()` is true, and answers it."""
    until = time.monotonic() + patience_s
    while not (found := look()):
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within {patience_s} s, {tell() if tell else found}")
        time.sleep(PAUSE_S)
    return found
