"""A kubelet for tests: binds pods to its node (there is no scheduler), and runs each as a process of this machine.

It does what Quelea relies on as a real one does: the pod's own address (of 127.0.0.0/8), `$(NAME)` in arguments, the
status with its container's state, SIGTERM at the deletion timestamp, SIGKILL when the grace is over, the pod's end.
Of images it has those that it is told; of others it says ErrImagePull.
"""

import datetime
import itertools
import os
import re
import signal
import subprocess
import threading
import time

from api import PODS, ApiError

from harness.process import die_with_parent

AGAIN_S = 0.2
VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class Container:
    """The process of one pod."""

    def __init__(self, pod, address, process):
        self.pod, self.address, self.process = pod, address, process
        self.name = pod["metadata"]["name"]
        self.kill_at = None
        self.started_at = now()
        self.gone = threading.Event()


class Kubelet:
    """Runs the pods of a namespace, by threads of the test's own process."""

    def __init__(self, api, namespace, images, log_dir, node="node-1"):
        self.api, self.namespace, self.images, self.log_dir, self.node = api, namespace, images, log_dir, node
        self.pods = PODS.format(namespace)
        self.containers = {}
        # Of pods that were started: a late event must not start one again.
        self.started = set()
        self.addresses = itertools.count(10)
        self.lock = threading.RLock()
        self.stopped = threading.Event()
        # What happened, in order: (what, the pod's name, seconds of grace or exit code).
        self.history = []
        log_dir.mkdir(parents=True, exist_ok=True)
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self._watch, self._end_late_ones)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        """Kills what runs."""
        self.stopped.set()
        with self.lock:
            running = list(self.containers.values())
        for container in running:
            container.process.kill()
        for container in running:
            container.process.wait()

    def process_of(self, name) -> subprocess.Popen:
        """The process that runs a pod."""
        with self.lock:
            return next(one.process for one in self.containers.values() if one.name == name)

    def happened(self, what):
        """The pods that something happened to, in order."""
        with self.lock:
            return [(name, value) for kind, name, value in self.history if kind == what]

    # -- the watch ----------------------------------------------------------------------------

    def _watch(self):
        while not self.stopped.is_set():
            try:
                listed = self.api.get(self.pods)
                for pod in listed["items"]:
                    self._see("ADDED", pod)
                self._kill_unknown({pod["metadata"]["uid"] for pod in listed["items"]})
                for kind, pod in self.api.watch(self.pods, listed["metadata"]["resourceVersion"]):
                    if kind == "ERROR" or self.stopped.is_set():
                        break
                    self._see(kind, pod)
            except (OSError, ApiError, ValueError):
                self.stopped.wait(AGAIN_S)

    def _see(self, kind, pod):
        uid, meta = pod["metadata"]["uid"], pod["metadata"]
        with self.lock:
            container = self.containers.get(uid)
        if kind == "DELETED":
            if container:
                container.process.kill()
        elif not pod["spec"].get("nodeName"):
            self._bind(pod)
        elif meta.get("deletionTimestamp"):
            if container:
                self._terminate(container, meta)
            else:
                self._delete(pod)
        elif uid not in self.started and pod["status"].get("phase") == "Pending":
            self._start(pod)

    def _kill_unknown(self, uids):
        with self.lock:
            for uid, container in self.containers.items():
                if uid not in uids:
                    container.process.kill()

    def _bind(self, pod):
        meta = pod["metadata"]
        target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
        self._tell("POST", f"{self.pods}/{meta['name']}/binding", binding)

    # -- a pod's life -------------------------------------------------------------------------

    def _start(self, pod):
        spec, meta = pod["spec"]["containers"][0], pod["metadata"]
        if spec["image"] not in self.images:
            waiting = {"reason": "ErrImagePull", "message": f"no image {spec['image']}"}
            return self._status(pod, "Pending", {"waiting": waiting}, None)
        number = next(self.addresses)
        address = f"127.77.{number // 250}.{number % 250 + 1}"
        given = environment(pod, spec, address)
        arguments = [expand(argument, given) for argument in spec.get("command", []) + spec.get("args", [])]
        command = arguments if spec.get("command") else [str(self.images[spec["image"]]), *arguments]
        with open(self.log_dir / f"{meta['name']}.log", "ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ["PATH"], **given},
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        container = Container(pod, address, process)
        with self.lock:
            self.containers[meta["uid"]] = container
            self.started.add(meta["uid"])
            self.history.append(("started", container.name, 0))
        self._status(pod, "Running", {"running": {"startedAt": container.started_at}}, address)
        threading.Thread(target=self._reap, args=(container,), daemon=True).start()

    def _terminate(self, container, meta):
        with self.lock:
            first = container.kill_at is None
            left_s = (moment(meta["deletionTimestamp"]) - datetime.datetime.now(datetime.UTC)).total_seconds()
            container.kill_at = time.monotonic() + left_s
            if first:
                self.history.append(("terminated", container.name, meta["deletionGracePeriodSeconds"]))
        if first:
            container.process.send_signal(signal.SIGTERM)

    def _end_late_ones(self):
        while not self.stopped.wait(AGAIN_S):
            with self.lock:
                late = [one for one in self.containers.values() if one.kill_at and one.kill_at <= time.monotonic()]
                for container in late:
                    container.kill_at = float("inf")
                    self.history.append(("killed", container.name, 9))
            for container in late:
                container.process.kill()

    def _reap(self, container):
        code = container.process.wait()
        ended = {"exitCode": 128 - code, "signal": -code} if code < 0 else {"exitCode": code}
        ended |= {"reason": "Error" if code else "Completed", "finishedAt": now()}
        ended["startedAt"] = container.started_at
        self._status(container.pod, "Failed" if code else "Succeeded", {"terminated": ended}, container.address)
        with self.lock:
            self.containers.pop(container.pod["metadata"]["uid"])
            self.history.append(("ended", container.name, code))
        pod = self._tell("GET", f"{self.pods}/{container.name}")
        if pod and pod["metadata"].get("deletionTimestamp"):
            self._delete(pod)

    def _delete(self, pod):
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self._tell("DELETE", f"{self.pods}/{pod['metadata']['name']}", body)

    def _status(self, pod, phase, state, address):
        spec, meta = pod["spec"]["containers"][0], pod["metadata"]
        ready = "running" in state
        container = {
            "name": spec["name"],
            "image": spec["image"],
            "imageID": "",
            "restartCount": 0,
            "ready": ready,
            "state": state,
        }
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": now()}
        status = {"phase": phase, "conditions": [condition], "containerStatuses": [container]}
        if address:
            status |= {"podIP": address, "podIPs": [{"ip": address}], "hostIP": "127.0.0.1"}
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        self._tell("PATCH", f"{self.pods}/{meta['name']}/status", body)

    def _tell(self, method, path, body=None):
        """Says it until the API server takes it; None if it is not to be said any more."""
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        while not self.stopped.is_set():
            try:
                return self.api.call(method, path, body, content)
            except ApiError as error:
                # Gone, bound already, or another one of that name.
                if error.code in (404, 409, 422):
                    return None
            except (OSError, ValueError):
                pass
            self.stopped.wait(AGAIN_S)
        return None


def environment(pod, spec, address):
    fields = {
        "status.podIP": address,
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
    }
    given = {}
    for variable in spec.get("env", []):
        source = variable.get("valueFrom")
        value = fields[source["fieldRef"]["fieldPath"]] if source else expand(variable.get("value", ""), given)
        given[variable["name"]] = value
    return given


def expand(text, given):
    return VARIABLE.sub(lambda found: given.get(found[1], found[0]), text)


def now():
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text):
    return datetime.datetime.fromisoformat(text)
