"""Accounts with access keys, their users' permissions, queue policies, and signatures that are verified."""

import json
import urllib.error
import urllib.request

import pytest
from harness.broker import foreign_broker
from harness.management import Management, Refused, segment
from harness.served import served
from harness.sqs.client import Sqs, refuses
from test_wire import call, presigned, speak_json, unsigned_get

pytestmark = pytest.mark.quelea("accounts are made by Quelea's own API")
DENIED = ("AccessDenied", "is not authorized")


@pytest.fixture(scope="session")
def management(broker):
    return None if foreign_broker() else Management(broker.http)


@pytest.fixture
def tenant(broker, management, name):
    """Makes users with a key each, in an account of this test's own: `tenant("who", write=".*")` is a client."""
    account, users = name("account")[-40:].strip("-"), []
    management.put(f"/api/accounts/{segment(account)}")

    def make(who="user", account=account, configure="", write="", read=""):
        user = name(who)
        if user not in users:
            management.put_user(user, "secret")
            users.append(user)
        vhost = account if account != "000000000000" else "/"
        management.permit(vhost, user, configure=configure, write=write, read=read)
        key = management.request("POST", "/api/access-keys", {"user": user, "account": account})
        client = Sqs(broker.sqs, key=key["access_key_id"], secret=key["secret_access_key"])
        client.key, client.user, client.account = key, user, account
        return client

    make.account = account
    yield make
    # Only ordered queues go with their account.
    cleaner = make("cleaner", **ALL)
    for url in cleaner.client.list_queues().get("QueueUrls", []):
        cleaner.client.delete_queue(QueueUrl=url)
    management.delete(f"/api/accounts/{segment(account)}")
    for user in users:
        management.delete(f"/api/users/{segment(user)}")


ALL = {"configure": ".*", "write": ".*", "read": ".*"}


# -- owners ---------------------------------------------------------------------------------------


@pytest.fixture
def owner(management, name):
    """An account with an owner, as the owner sees the API."""
    account = name("owned")[-40:].strip("-")
    management.put(f"/api/accounts/{account}", {"password": "its-own"})
    yield management.signed_in(account, "its-own")
    if account in [one["account"] for one in management.get("/api/accounts")]:
        management.delete(f"/api/accounts/{account}")


def refused(call, *words):
    with pytest.raises(Refused) as refusal:
        call(*words)
    return refusal.value


def test_an_owner_signs_in_by_the_accounts_name_and_sees_it_alone(owner, management, broker):
    me = owner.get("/api/whoami")
    account = me["name"]
    assert me["tags"] == ["management"]
    assert [one["account"] for one in owner.get("/api/accounts")] == [account]
    owner.post(f"/quelea/v1/sqs/{account}/CreateQueue", {"QueueName": "orders"})
    assert owner.post(f"/quelea/v1/sqs/{account}/ListQueues", {}) == {"QueueUrls": [f"/{account}/orders"]}
    key = owner.post("/api/access-keys", {"user": account, "account": account})
    client = Sqs(broker.sqs, key=key["access_key_id"], secret=key["secret_access_key"])
    client.send("orders", "m")
    assert [one["access_key_id"] for one in owner.get("/api/access-keys")] == [key["access_key_id"]]
    owner.put(f"/api/access-keys/{key['access_key_id']}", {"enabled": False})
    with refuses("InvalidClientTokenId", status=403):
        client.send("orders", "m")
    owner.delete(f"/api/access-keys/{key['access_key_id']}")
    assert owner.get("/api/access-keys") == []
    for path in ("/api/users", "/api/audit"):
        assert refused(owner.get, path).status == 403
    assert refused(owner.post, "/quelea/v1/sqs/000000000000/ListQueues", {}).status == 403
    owner.post(f"/quelea/v1/sqs/{account}/DeleteQueue", {"QueueUrl": f"/{account}/orders"})
    management.delete(f"/api/accounts/{account}")
    assert refused(owner.get, "/api/whoami").status == 401


def test_an_owner_makes_keys_for_nobody_else_and_sees_none_of_others(owner, management):
    account = owner.get("/api/whoami")["name"]
    other = management.post("/api/access-keys", {"user": "guest"})["access_key_id"]
    assert refused(owner.post, "/api/access-keys", {"user": "guest", "account": account}).status == 403
    assert refused(owner.post, "/api/access-keys", {"user": account}).status == 403, "of the account of /"
    assert refused(owner.get, f"/api/access-keys/{other}").status == 404
    assert refused(owner.put, f"/api/access-keys/{other}", {"enabled": False}).status == 404
    assert refused(owner.delete, f"/api/access-keys/{other}").status == 404
    assert refused(owner.put, f"/api/accounts/{account}").status == 403
    assert refused(owner.delete, f"/api/accounts/{account}").status == 403
    management.delete(f"/api/access-keys/{other}")
    made = [owner.post("/api/access-keys", {"user": account, "account": account}) for _ in range(16)]
    full = refused(owner.post, "/api/access-keys", {"user": account, "account": account})
    assert full.status == 400 and "the limit of 16 is reached" in full.reason and len(made) == 16


def test_an_owners_password_is_set_again_but_no_administrators(owner, management, name):
    account = owner.get("/api/whoami")["name"]
    management.put(f"/api/accounts/{account}", {"password": "another"})
    assert refused(owner.get, "/api/whoami").status == 401
    again = management.signed_in(account, "another")
    assert again.get("/api/whoami")["tags"] == ["management"]
    management.put(f"/api/accounts/{account}")
    assert again.get("/api/whoami")["name"] == account, "who says nothing of an owner leaves theirs"
    taken = refused(management.put, "/api/accounts/guest", {"password": "x"})
    assert taken.status == 409 and "guest" in taken.reason
    assert "guest" not in [one["account"] for one in management.get("/api/accounts")]
    assert refused(management.put, f"/api/accounts/{account}", {"password": 7}).status == 400


# -- keys -----------------------------------------------------------------------------------------


def test_a_key_works_in_its_account(tenant):
    client = tenant(**ALL)
    url = client.create("orders")
    assert url == f"{client.endpoint}/{client.account}/orders"
    client.send(url, "m")
    assert client.take(url)[0]["Body"] == "m"
    assert client.arn(url).split(":")[4] == client.account


def test_accounts_are_worlds_apart(sqs, queue, tenant, name):
    client = tenant(**ALL)
    here, there = queue(), client.create(name())
    assert here != there
    client.send(there, "there")
    assert sqs.counts(here) == (0, 0, 0)
    assert client.client.list_queues().get("QueueUrls") == [there]
    with refuses(*DENIED, status=403):
        client.send(here, "m")


def test_a_wrong_secret_is_refused(broker, tenant):
    key = tenant(**ALL).key
    forged = Sqs(broker.sqs, key=key["access_key_id"], secret="forged")
    with refuses("SignatureDoesNotMatch", "signature", status=403):
        forged.client.list_queues()


def test_a_key_is_rotated(broker, management, tenant):
    old, new = tenant(**ALL), tenant(**ALL)
    assert old.user == new.user and old.key != new.key
    url = old.create("q")
    new.send(url, "m")
    place = f"/api/access-keys/{old.key['access_key_id']}"
    management.put(place, {"enabled": False})
    with refuses("InvalidClientTokenId", status=403):
        old.send(url, "m")
    new.send(url, "m")
    management.put(place, {"enabled": True})
    old.send(url, "m")
    management.delete(place)
    # From this machine an unknown key is anybody's, who may do everything in the default account, and nowhere else.
    assert management.request("GET", "/api/access-keys") is not None
    assert new.counts(url) == (3, 0, 0)


def test_secrets_are_shown_once(management, tenant):
    key = tenant(**ALL).key
    listed = json.dumps(management.get("/api/access-keys"))
    assert key["access_key_id"] in listed and key["secret_access_key"] not in listed


def test_the_sender_id_is_who_signed(tenant):
    client = tenant(**ALL)
    url = client.create("q")
    client.send(url, "m")
    [message] = client.receive(url, MessageSystemAttributeNames=["SenderId"])
    assert message["Attributes"]["SenderId"]


# -- permissions ----------------------------------------------------------------------------------


def test_a_user_may_do_what_its_permissions_say(tenant):
    owner = tenant("owner", **ALL)
    url = owner.create("orders")
    sender, receiver = tenant("sender", write="^orders$"), tenant("receiver", read="^orders$")
    sender.send(url, "m")
    with refuses(*DENIED, status=403):
        sender.poll(url)
    [message] = receiver.receive(url)
    with refuses(*DENIED, status=403):
        receiver.send(url, "m")
    receiver.delete(url, message)
    for client in (sender, receiver):
        with refuses(*DENIED, status=403):
            client.set(url, DelaySeconds=1)
        with refuses(*DENIED, status=403):
            client.client.delete_queue(QueueUrl=url)
        with refuses(*DENIED, status=403):
            client.create("another")


def test_a_user_does_not_learn_of_queues_it_may_not_use(tenant):
    owner = tenant("owner", **ALL)
    url = owner.create("secret")
    stranger = tenant("stranger", write="^other$")
    with pytest.raises(stranger.client.exceptions.ClientError) as raised:
        stranger.client.get_queue_url(QueueName="secret")
    assert raised.value.response["Error"]["Code"] in ("AccessDenied", "AWS.SimpleQueueService.NonExistentQueue")
    assert url not in stranger.client.list_queues().get("QueueUrls", [])


# -- policies -------------------------------------------------------------------------------------


def statement(url_arn, principal, action, effect="Allow", **more):
    return {"Effect": effect, "Principal": principal, "Action": action, "Resource": url_arn, **more}


def police(owner, url, *statements):
    owner.set(url, Policy=json.dumps({"Version": "2012-10-17", "Statement": list(statements)}))


def test_a_policy_lets_another_account_send(tenant, queue, sqs):
    url = queue()
    guest = tenant(**ALL)
    with refuses(*DENIED, status=403):
        guest.send(url, "m")
    police(sqs, url, statement(sqs.arn(url), {"AWS": f"arn:aws:iam::{guest.account}:root"}, "sqs:SendMessage"))
    guest.send(url, "m")
    guest.client.send_message_batch(QueueUrl=url, Entries=[{"Id": "0", "MessageBody": "n"}])
    with refuses(*DENIED, status=403):
        guest.poll(url)
    assert sqs.counts(url) == (2, 0, 0)
    sqs.set(url, Policy="")
    with refuses(*DENIED, status=403):
        guest.send(url, "m")


def test_a_deny_wins(tenant):
    owner = tenant("owner", **ALL)
    url = owner.create("q")
    arn = owner.arn(url)
    police(owner, url, statement(arn, "*", "sqs:*"), statement(arn, "*", "sqs:SendMessage", "Deny"))
    with refuses(*DENIED, status=403):
        owner.send(url, "m")
    owner.poll(url)
    owner.set(url, Policy="")
    owner.send(url, "m")


def test_a_condition_has_to_hold(tenant, queue, sqs):
    url = queue()
    guest = tenant(**ALL)
    arn = sqs.arn(url)

    def only_from(address):
        police(sqs, url, statement(arn, "*", "sqs:SendMessage", Condition={"IpAddress": {"aws:SourceIp": address}}))

    only_from("10.0.0.0/8")
    with refuses(*DENIED, status=403):
        guest.send(url, "m")
    only_from("127.0.0.0/8")
    guest.send(url, "m")


@pytest.mark.parametrize("policy", ["{", "[]", '{"Statement":[{"Effect":"Perhaps","Principal":"*","Action":"*"}]}', "x" * 9000])
def test_a_wrong_policy_is_refused(sqs, queue, policy):
    with refuses("InvalidAttributeValue", "Policy"):
        queue(Policy=policy)


def test_permissions_are_statements_of_the_policy(tenant, queue, sqs, name):
    url = queue()
    guest = tenant(**ALL)
    arn = sqs.arn(url)
    add, remove = sqs.client.add_permission, sqs.client.remove_permission
    add(QueueUrl=url, Label="send", AWSAccountIds=[guest.account], Actions=["SendMessage"])
    guest.send(url, "m")
    with refuses(*DENIED, status=403):
        guest.poll(url)
    add(QueueUrl=url, Label="receive", AWSAccountIds=[guest.account], Actions=["ReceiveMessage", "DeleteMessage"])
    guest.take(url)
    policy = json.loads(sqs.attributes(url, "Policy")["Policy"])
    root = f"arn:aws:iam::{guest.account}:root"
    assert policy == {
        "Version": "2008-10-17",
        "Id": f"{arn}/SQSDefaultPolicy",
        "Statement": [
            {"Sid": "send", "Effect": "Allow", "Principal": {"AWS": root}, "Action": "SQS:SendMessage", "Resource": arn},
            {
                "Sid": "receive",
                "Effect": "Allow",
                "Principal": {"AWS": root},
                "Action": ["SQS:ReceiveMessage", "SQS:DeleteMessage"],
                "Resource": arn,
            },
        ],
    }
    with refuses("InvalidParameterValue", "Value send for parameter Label is invalid. Reason: Already exists."):
        add(QueueUrl=url, Label="send", AWSAccountIds=[guest.account], Actions=["SendMessage"])
    remove(QueueUrl=url, Label="send")
    with refuses(*DENIED, status=403):
        guest.send(url, "m")
    with refuses("InvalidParameterValue", "Value send for parameter Label is invalid. Reason: can't find label"):
        remove(QueueUrl=url, Label="send")
    remove(QueueUrl=url, Label="receive")
    assert "Policy" not in sqs.attributes(url)


WRONG_PERMISSIONS = {
    "no label": {"Label": ""},
    "wrong label": {"Label": "a b"},
    "long label": {"Label": "x" * 81},
    "no account": {"AWSAccountIds": []},
    "no action": {"Actions": []},
    "wrong action": {"Actions": ["Nonsense"]},
    "an action of the owner": {"Actions": ["DeleteQueue"]},
}


@pytest.mark.parametrize("wrong", WRONG_PERMISSIONS.values(), ids=WRONG_PERMISSIONS.keys())
def test_a_wrong_permission_is_refused(sqs, queue, wrong):
    url = queue()
    given = {"Label": "l", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"], **wrong}
    with pytest.raises(sqs.client.exceptions.ClientError) as raised:
        sqs.client.add_permission(QueueUrl=url, **given)
    assert raised.value.response["Error"]["Code"] in ("InvalidParameterValue", "MissingParameter")
    assert "Policy" not in sqs.attributes(url)


# -- signatures -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict(request):
    """A broker that wants every request signed, and a key for it."""
    if foreign_broker():
        pytest.skip("needs a broker of our own")
    with served(QUELEA__SQS__VERIFY="always") as broker:
        key = Management(broker.http).request("POST", "/api/access-keys", {"user": "guest", "account": "000000000000"})
        client = Sqs(broker.sqs, key=key["access_key_id"], secret=key["secret_access_key"])
        client.key = key
        yield client


def test_what_is_signed_rightly_goes_through(strict):
    url = strict.create("signed")
    strict.send(url, "grüße & <b>" * 1000)
    assert strict.take(url)[0]["Body"] == "grüße & <b>" * 1000


def test_what_is_not_signed_is_refused(strict):
    request = urllib.request.Request(strict.endpoint, b"{}", {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"})
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request, timeout=60)
    assert raised.value.code == 403
    assert "MissingAuthenticationToken" in json.loads(raised.value.read())["__type"]


def test_an_unknown_key_is_refused(strict):
    with refuses("InvalidClientTokenId", status=403):
        Sqs(strict.endpoint).client.list_queues()


def test_a_signature_that_is_made_up_is_refused(strict):
    assert call(strict.endpoint, "Action=ListQueues", {"Content-Type": "application/x-www-form-urlencoded"}).status in (400, 403)
    assert speak_json(strict.endpoint, "ListQueues", {}).status in (400, 403)


def test_presigned_urls_are_verified(strict):
    url = strict.create("presigned")
    key = {"key": strict.key["access_key_id"], "secret": strict.key["secret_access_key"]}
    link = presigned(url, **key, Action="SendMessage", MessageBody="by-link")
    assert unsigned_get(link.replace("by-link", "forged")).status == 403
    assert unsigned_get(link).status == 200
    assert unsigned_get(presigned(url, key["key"], "forged", Action="SendMessage", MessageBody="m")).status == 403
    assert strict.drain(url) == ["by-link"]


def test_a_clock_that_is_off_is_refused(strict, monkeypatch):
    import datetime

    import botocore.auth

    class Late(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz) - datetime.timedelta(minutes=16)

        @classmethod
        def utcnow(cls):
            return super().utcnow() - datetime.timedelta(minutes=16)

    for place in ("datetime", "get_current_datetime"):
        if hasattr(botocore.auth, place):
            replacement = Late if place == "datetime" else lambda *_, **__: datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - datetime.timedelta(minutes=16)
            monkeypatch.setattr(botocore.auth, place, replacement)
    with refuses("SignatureDoesNotMatch", "Signature expired", status=403):
        strict.client.list_queues()


def test_another_name_of_the_account_is_no_way_around_a_deny(sqs, queue, tenant):
    url = queue()
    name = url.rsplit("/", 1)[1]
    deny = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": sqs.arn(url)}
    client = tenant(account="000000000000", **ALL)
    client.send(url, "before")
    sqs.set(url, Policy=json.dumps({"Version": "2012-10-17", "Statement": [deny]}))
    with refuses("AccessDenied", "a resource-based policy denies", status=403):
        client.send(url, "m")
    for account in ("%2F", "%2f"):
        with refuses("AWS.SimpleQueueService.NonExistentQueue"):
            client.send(f"{client.endpoint}/{account}/{name}", "m")
    with refuses("AWS.SimpleQueueService.NonExistentQueue"):
        client.client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId="/")
    assert sqs.counts(url)[0] == 1
