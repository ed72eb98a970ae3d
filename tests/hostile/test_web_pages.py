"""What a browser sends for a page of another origin, also for one whose name was made to point here."""

import datetime
import hashlib
import hmac

import pytest
from harness.management import Management
from hostile.probe import request

pytestmark = pytest.mark.process

GUEST = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"
EVIL_HOST = "evil.example"
FOREIGN = [
    "Origin: https://evil.example\r\n",
    "Origin: null\r\n",
    "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
    "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n",
]
ALLOWED = "https://app.example.com"
MOZILLA = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0\r\n"


@pytest.fixture(scope="module")
def target():
    from harness.broker import Broker, binary_path

    names = {"QUELEA__HTTP__HOSTS": "mq.example.com", "QUELEA__SQS__HOSTS": "mq.example.com", "QUELEA__SQS__ORIGINS": ALLOWED}
    with Broker(binary_path(), environment=names) as broker:
        yield broker


def ask(port, line, headers="", host=None, body=""):
    host = host or f"localhost:{port}"
    length = f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n" if body else ""
    return request(port, f"{line} HTTP/1.1\r\nHost: {host}\r\n{headers}{length}Connection: close\r\n\r\n{body}".encode())


def vhosts(broker):
    return {vhost["name"] for vhost in Management(broker.http).get("/api/vhosts")}


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_page_of_another_origin_neither_changes_nor_reads_anything_by_the_api(target, headers):
    before = vhosts(target)
    assert ask(target.http_port, "PUT /api/vhosts/stolen", GUEST + headers)[0] == 403
    assert ask(target.http_port, "DELETE /api/users/guest", GUEST + headers)[0] == 403
    assert ask(target.http_port, "GET /api/overview", GUEST + headers)[0] == 403
    assert vhosts(target) == before


@pytest.mark.parametrize("line", ["GET /api/overview", "GET /metrics", "PUT /api/vhosts/stolen"])
def test_a_page_whose_name_points_here_is_refused_by_the_api(target, line):
    for host in (EVIL_HOST, f"{EVIL_HOST}:{target.http_port}"):
        status, answer = ask(target.http_port, line, GUEST + f"Origin: http://{host}\r\n", host=host)
        assert status == 421 and b"http.hosts" in answer
    # A whole address in the request line counts more than Host.
    assert ask(target.http_port, line.replace(" /", f" http://{EVIL_HOST}/"), GUEST)[0] == 421
    assert "stolen" not in vhosts(target)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:15672", "[::1]:80", "quelea", "rabbitmq:15672", "mq.example.com", "a.localhost"])
def test_clients_that_are_no_pages_are_served_by_any_of_our_names(target, host):
    assert ask(target.http_port, "GET /api/overview", GUEST, host=host)[0] == 200
    assert ask(target.http_port, "PUT /api/vhosts/ours", GUEST, host=host)[0] in (201, 204)
    sqs = "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.ListQueues\r\n"
    assert ask(target.sqs_port, "POST /", sqs + "Content-Length: 0\r\n", host=host)[0] == 200
    assert ask(target.sqs_port, "GET /health", host=EVIL_HOST)[0] == 200


def test_our_own_page_and_a_link_to_us_are_served(target):
    ours = f"Origin: http://localhost:{target.http_port}\r\nSec-Fetch-Site: same-origin\r\n{MOZILLA}"
    assert ask(target.http_port, "PUT /api/vhosts/ours", GUEST + ours)[0] in (201, 204)
    link = f"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n{MOZILLA}"
    assert ask(target.http_port, "GET /api/overview", GUEST + link)[0] == 200


def queues(target):
    _, answer = ask(target.sqs_port, "GET /?Action=ListQueues")
    return answer


@pytest.mark.parametrize(
    "headers, host",
    [(headers, None) for headers in FOREIGN]
    + [("", EVIL_HOST), (MOZILLA, None), ("Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n", None), ("Sec-Fetch-Site: same-origin\r\n", None)],
)
def test_a_get_that_a_browser_sends_changes_nothing_by_sqs(target, headers, host):
    status, answer = ask(target.sqs_port, "GET /?Action=CreateQueue&QueueName=stolen", headers, host=host)
    assert status == 403 and b"AccessDenied" in answer
    assert b"stolen" not in queues(target)


def test_a_form_that_a_page_posts_changes_nothing_by_sqs(target):
    form = "Action=CreateQueue&QueueName=stolen"
    kind = f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\nConnection: close\r\n\r\n{form}"
    for host, headers in [(f"{EVIL_HOST}:{target.sqs_port}", "")] + [("localhost", headers) for headers in FOREIGN]:
        status, _ = request(target.sqs_port, f"POST / HTTP/1.1\r\nHost: {host}\r\n{headers}{kind}".encode())
        assert status == 403, (host, headers)
    assert b"stolen" not in queues(target)


@pytest.fixture(scope="module")
def key(target):
    """One that a page got hold of: its user's."""
    return Management(target.http).request("POST", "/api/access-keys", {"user": "guest", "account": "000000000000"})


def post_signed(target, key, headers, action="CreateQueue", body='{"QueueName": "signed"}'):
    """What an SDK in a page sends, with a signature that is right."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    host, scope = f"localhost:{target.sqs_port}", f"{now[:8]}/us-east-1/sqs/aws4_request"
    names = "host;x-amz-date;x-amz-target"
    digest = hashlib.sha256(body.encode()).hexdigest()
    canonical = f"POST\n/\n\nhost:{host}\nx-amz-date:{now}\nx-amz-target:AmazonSQS.{action}\n\n{names}\n{digest}"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    secret = f"AWS4{key['secret_access_key']}".encode()
    for part in scope.split("/"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    signature = hmac.new(secret, text.encode(), "sha256").hexdigest()
    signed = f"X-Amz-Date: {now}\r\nX-Amz-Target: AmazonSQS.{action}\r\nAuthorization: AWS4-HMAC-SHA256 Credential={key['access_key_id']}/{scope}, SignedHeaders={names}, Signature={signature}\r\n"
    return ask(target.sqs_port, "POST /", signed + headers, host=host, body=body)


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_page_of_another_origin_changes_nothing_by_sqs_with_a_key(target, key, headers):
    status, answer = post_signed(target, key, headers)
    assert status == 403 and b"sqs.origins" in answer
    assert b"signed" not in queues(target)


def test_a_page_of_an_allowed_origin_uses_sqs_with_a_key_only(target, key):
    page = f"Origin: {ALLOWED}\r\nSec-Fetch-Site: cross-site\r\n{MOZILLA}"
    assert ask(target.sqs_port, "OPTIONS /", page + "Access-Control-Request-Method: POST\r\n")[0] == 204
    stranger = {"access_key_id": "AKIANONE", "secret_access_key": "none"}
    assert post_signed(target, stranger, page)[0] == 403
    assert b"signed" not in queues(target)
    assert post_signed(target, key, page)[0] == 200
    assert b"signed" in queues(target)
    assert post_signed(target, key, page, "DeleteQueue", f'{{"QueueUrl": "http://localhost:{target.sqs_port}/000000000000/signed"}}')[0] == 200
