"""The management API, in RabbitMQ's dialect, by the standard library."""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request


def segment(name: str) -> str:
    return urllib.parse.quote(name, safe="")


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Management:
    def __init__(self, http, user="guest", password="guest"):
        self.http = http
        self.authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def request(self, verb, path, body=None):
        """The answer's JSON, or None if it has no body."""
        request = urllib.request.Request(self.http + path, method=verb)
        request.add_header("Authorization", self.authorization)
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, data, timeout=20) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from None
        return json.loads(text) if text else None

    def get(self, path):
        return self.request("GET", path)

    def put(self, path, body=None):
        return self.request("PUT", path, {} if body is None else body)

    def delete(self, path):
        return self.request("DELETE", path)

    # -- access -------------------------------------------------------------------------------

    def put_user(self, name, password, tags=""):
        self.put(f"/api/users/{segment(name)}", {"password": password, "tags": tags})

    def put_vhost(self, name):
        self.put(f"/api/vhosts/{segment(name)}")

    def permit(self, vhost, user, configure=".*", write=".*", read=".*"):
        body = {"configure": configure, "write": write, "read": read}
        self.put(f"/api/permissions/{segment(vhost)}/{segment(user)}", body)

    def permit_topic(self, vhost, user, exchange, write=".*", read=".*"):
        body = {"exchange": exchange, "write": write, "read": read}
        self.put(f"/api/topic-permissions/{segment(vhost)}/{segment(user)}", body)
