"""A control plane of our own: etcd and a kube-apiserver on free ports of this machine, and a way to cut a client off."""

import base64
import json
import os
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

from api import Api

from harness.ports import free_port
from harness.process import die_with_parent

READY_S = 180
PAUSE_S = 0.1
ADMIN, ADMIN_TOKEN = "admin", "admin-of-the-test"


class ClusterError(Exception):
    """The control plane does not come up."""


class Cluster:
    """etcd and kube-apiserver. The API server can be ended and started again at its port."""

    def __init__(self, directory: Path, apiserver: Path, etcd: Path):
        self.directory, self.apiserver_program, self.etcd_program = directory, apiserver, etcd
        self.etcd_port, self.port = free_port(), free_port()
        self.etcd = self.apiserver = None
        directory.mkdir(parents=True, exist_ok=True)

    def __enter__(self):
        peer = free_port()
        self.etcd = self._spawn(
            "etcd",
            self.etcd_program,
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--advertise-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        key = self.directory / "service-accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        tokens = self.directory / "tokens.csv"
        tokens.write_text(f'{ADMIN_TOKEN},{ADMIN},{ADMIN},"system:masters"\n')
        self.start()
        return self

    def __exit__(self, *_):
        for process in (self.apiserver, self.etcd):
            if process is not None:
                process.kill()
                process.wait()

    # -- the API server -----------------------------------------------------------------------

    def start(self):
        """Starts the API server and waits until it is ready."""
        key = self.directory / "service-accounts.key"
        self.apiserver = self._spawn(
            "apiserver",
            self.apiserver_program,
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.directory / 'certificates'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/24",
            # It is told to nobody; without it one of this machine is looked for, which may have none.
            "--advertise-address=192.0.2.1",
            "--endpoint-reconciler-type=none",
            # There is no controller that would make the account "default" in a namespace.
            "--disable-admission-plugins=ServiceAccount",
        )
        until = time.monotonic() + READY_S
        while not self._is_ready():
            if self.apiserver.poll() is not None or time.monotonic() > until:
                raise ClusterError(f"no API server within {READY_S} s:\n{self._log_tail('apiserver')}")
            time.sleep(PAUSE_S)

    def _is_ready(self):
        request = urllib.request.Request(f"{self.server}/readyz", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        try:
            with urllib.request.urlopen(request, context=self.admin().tls, timeout=10) as answer:
                return answer.read() == b"ok"
        except OSError:
            return False

    def kill_apiserver(self):
        """As when its machine is gone."""
        self.apiserver.kill()
        self.apiserver.wait()

    # -- whoever talks to it ------------------------------------------------------------------

    @property
    def server(self):
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self):
        return self.directory / "certificates" / "apiserver.crt"

    def admin(self) -> Api:
        return Api(self.server, self.authority, ADMIN_TOKEN)

    def account(self, namespace, name) -> Api:
        """Whom a service account's token, that the API server signs, lets in."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.admin().post(path, request)["status"]["token"]
        return Api(self.server, self.authority, token)

    def kubeconfig(self, path, api: Api, namespace, port=None) -> Path:
        """A kubeconfig of this user, who may be sent by way of another port."""
        cluster = {"server": f"https://127.0.0.1:{port or self.port}", "certificate-authority": str(self.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": api.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
        }
        path.write_text(json.dumps(config))
        return path

    # -- etcd ---------------------------------------------------------------------------------

    def compact(self):
        """Forgets all old versions: who watches from one of them is told 410 by an API server that starts anew."""
        newest = self._etcd("range", {"key": base64.b64encode(b"/").decode()})["header"]["revision"]
        self._etcd("compaction", {"revision": newest, "physical": True})

    def _etcd(self, what, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}/v3/kv/{what}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def _spawn(self, name, *command):
        with open(self.directory / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=dict(os.environ),
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def _log_tail(self, name):
        return (self.directory / f"{name}.log").read_text(errors="replace")[-3_000:]


class Wire:
    """A port that passes on to the API server, until it is cut."""

    def __init__(self, target_port):
        self.target_port = target_port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.whole = True
        self.pairs = set()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Breaks what is connected, and lets nobody in."""
        with self.lock:
            self.whole = False
            for end in [end for pair in self.pairs for end in pair]:
                shut(end)

    def mend(self):
        with self.lock:
            self.whole = True

    def close(self):
        self.cut()
        shut(self.listener)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target_port), 10)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self.lock:
                if not self.whole:
                    near.close()
                    far.close()
                    continue
                self.pairs.add((near, far))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink, (near, far)), daemon=True).start()

    def _pass(self, source, sink, pair):
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
        except OSError:
            pass
        for end in pair:
            shut(end)
        with self.lock:
            if pair in self.pairs:
                self.pairs.discard(pair)
                return
        for end in pair:
            end.close()


def shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
