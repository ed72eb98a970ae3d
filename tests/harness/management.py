"""The management API, in RabbitMQ's dialect, by the standard library."""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request


def segment(name: str) -> str:
    return urllib.parse.quote(name, safe="")


class Refused(Exception):
    def __init__(self, status, body, headers):
        super().__init__(f"{status}: {body}")
        self.status, self.body, self.headers = status, body, headers

    @property
    def error(self):
        return json.loads(self.body)["error"]

    @property
    def reason(self):
        return json.loads(self.body)["reason"]


class Management:
    def __init__(self, http, user="guest", password="guest"):
        self.http = http
        self.authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def signed_in(self, user, password):
        return Management(self.http, user, password)

    def with_token(self, token):
        other = Management(self.http)
        other.authorization = f"Bearer {token}"
        return other

    def request(self, verb, path, body=None, raw=None):
        """The answer's JSON, or None if it has no body."""
        return self.answer(verb, path, body, raw)[0]

    def answer(self, verb, path, body=None, raw=None):
        """The answer's JSON, or None if it has no body; its status; and its headers."""
        request = urllib.request.Request(self.http + path, method=verb)
        request.add_header("Authorization", self.authorization)
        data = raw if body is None else json.dumps(body).encode()
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, data, timeout=60) as answer:
                text, status, headers = answer.read(), answer.status, answer.headers
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace"), error.headers) from None
        return (json.loads(text) if text else None), status, headers

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body):
        return self.request("POST", path, body)

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
