"""Kubernetes' API in plain Python: JSON over HTTPS with a bearer token, and watches."""

import http.client
import json
import socket
import ssl
import urllib.parse

TIMEOUT_S = 30
WATCH_S = 30
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
PODS = "/api/v1/namespaces/{}/pods"
QUEUES = "/apis/quelea.dev/v1alpha1/namespaces/{}/elasticqueues"
# Kind of a manifest to where such things are.
PATHS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ElasticQueue": QUEUES,
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
}


class ApiError(Exception):
    """The API server refused; `status` is its Status object."""

    def __init__(self, method, path, code, status):
        super().__init__(f"{method} {path}: {code} {status.get('reason')}: {status.get('message')}")
        self.code, self.status = code, status
        self.message = status.get("message") or ""


class Api:
    """One user of one API server."""

    def __init__(self, server: str, ca_file, token: str):
        self.server, self.token = server, token
        self.address = urllib.parse.urlsplit(server)
        self.tls = ssl.create_default_context(cafile=str(ca_file))

    def call(self, method, path, body=None, content="application/json", **query):
        """One request; answers the object. Values of `query` are the parameters."""
        connection, response = self._open(method, path, body, content, query, TIMEOUT_S)
        with connection_closed(connection):
            return self._object(method, path, response)

    def get(self, path, **query):
        return self.call("GET", path, **query)

    def find(self, path):
        """The object, or None if there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def post(self, path, body, **query):
        return self.call("POST", path, body, **query)

    def patch(self, path, body, **query):
        """A merge patch."""
        return self.call("PATCH", path, body, MERGE, **query)

    def delete(self, path, grace_s=None, uid=None):
        options = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid:
            options["preconditions"] = {"uid": uid}
        return self.call("DELETE", path, options)

    def apply(self, manifest, namespace, dry_run=False):
        """`kubectl apply --server-side`, with `--dry-run=server` if asked for."""
        named = manifest["metadata"].get("namespace", namespace)
        path = f"{PATHS[manifest['kind']].format(named)}/{manifest['metadata']['name']}"
        query = {"fieldManager": "test", "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        return self.call("PATCH", path, manifest, APPLY, **query)

    def items(self, path, **query):
        return self.get(path, **query)["items"]

    def watch(self, path, version):
        """Events as (type, object) from a version on, until the API server ends the watch."""
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(WATCH_S)}
        connection, response = self._open("GET", path, None, "", query, WATCH_S + 10)
        with connection_closed(connection):
            if response.status != 200:
                self._object("GET", path, response)
            while line := response.readline():
                event = json.loads(line)
                yield event["type"], event["object"]

    def _open(self, method, path, body, content, query, timeout_s):
        whole = f"{path}?{urllib.parse.urlencode(query)}" if query else path
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content
            body = json.dumps(body).encode()
        connection = http.client.HTTPSConnection(
            self.address.hostname, self.address.port, context=self.tls, timeout=timeout_s
        )
        try:
            connection.request(method, whole, body, headers)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    @staticmethod
    def _object(method, path, response):
        raw = response.read()
        try:
            value = json.loads(raw)
        except ValueError:
            value = {"message": raw.decode(errors="replace")}
        if response.status >= 300:
            raise ApiError(method, path, response.status, value)
        return value


class connection_closed:  # noqa: N801 - reads as what it is for
    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        return self.connection

    def __exit__(self, *_):
        if self.connection.sock is not None:
            try:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.connection.close()
