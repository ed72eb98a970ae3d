"""Replicated queues and their cluster: at a broker beside Cassandra, and at a front-end without one."""

import pytest
from harness.broker import Broker, binary_path
from harness.cassandra import cluster
from harness.elastic.broker import ElasticBroker
from harness.management import Management
from playwright.sync_api import expect

ACCOUNT = "000000000000"


@pytest.fixture(scope="module")
def cassandra():
    with cluster.alone() as started:
        yield {"QUELEA__CASSANDRA__NODES": started.contact_points(), "QUELEA__CASSANDRA__REPLICATION": "1"}


@pytest.fixture(scope="module")
def beside(cassandra):
    with ElasticBroker(environment=cassandra) as broker:
        yield broker


@pytest.fixture(scope="module")
def front_end(cassandra):
    with Broker(binary_path(), environment={**cassandra, "QUELEA__STORE": "cassandra"}) as started:
        yield started


def call(broker, action, **request):
    return Management(broker.http).post(f"/quelea/v1/sqs/{ACCOUNT}/{action}", request)


def test_the_cluster_is_shown_with_its_front_ends_and_nodes(beside, front_end, open_console):
    for served in (beside, front_end):
        console = open_console(served)
        page = console.page
        page.get_by_role("navigation").get_by_role("link", name="Cluster").click()
        expect(console.table("front-ends").get_by_role("row").filter(has_text="alive")).to_have_count(2)
        expect(console.row("front-ends", "(this one)")).to_have_count(1)
        expect(console.row("nodes of Cassandra", "connected")).to_have_count(1)
        console.check_accessible()
        console.check_width()


def test_a_front_end_has_the_pages_that_it_can_fill(front_end, open_console):
    console = open_console(front_end)
    page = console.page
    expect(page.get_by_role("heading", name="A front-end over Cassandra")).to_be_visible()
    expect(page.get_by_text("Nothing. Publishers are served")).to_be_visible()
    names = page.get_by_role("navigation", name="Pages").get_by_role("link")
    expect(names).to_have_text(["Overview", "Queues", "Cluster", "Accounts", "Users"])
    console.check_accessible()
    console.go("users", "guest")
    expect(console.row("permissions", "/")).to_be_visible()
    page.get_by_text("Set permissions in a virtual host").click()
    expect(page.get_by_role("combobox", name="Virtual host")).to_contain_text("/")
    console.check_accessible()


def test_a_replicated_queue_is_made_used_and_deleted(front_end, open_console):
    console = open_console(front_end)
    page = console.go("queues")
    page.get_by_text("Create a replicated queue").click()
    page.get_by_label("Name; a FIFO").fill("paid")
    page.get_by_label("Attributes, as JSON").fill('{"VisibilityTimeout": 600, "OrderHint": "auto"}')
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("paid")
    attributes = call(front_end, "GetQueueAttributes", QueueUrl=f"/{ACCOUNT}/paid", AttributeNames=["All", "Class"])["Attributes"]
    assert (attributes["VisibilityTimeout"], attributes["OrderHint"], attributes["Class"]) == ("600", "auto", "replicated")

    page.get_by_text("Send a message").click()
    page.get_by_label("Text", exact=True).fill("<b>as it is</b>")
    page.get_by_role("region", name="Messages").get_by_label("Attributes, as JSON").fill('{"tenant": "a"}')
    page.get_by_role("button", name="Send").click()
    console.said("The message is sent.")
    page.get_by_role("button", name="Look at the oldest").click()
    expect(page.get_by_role("region", name="Text of the oldest message 1")).to_have_text("<b>as it is</b>")
    expect(page.get_by_role("region", name="Oldest messages")).to_contain_text("visible, never received")
    expect(page.get_by_role("region", name="Oldest messages")).to_contain_text('{"tenant":"a"}')
    console.check_accessible()
    page.get_by_role("button", name="Receive up to 10").click()
    expect(page.get_by_role("region", name="Text of message 1", exact=True)).to_have_text("<b>as it is</b>")
    expect(page.get_by_role("region", name="Messages", exact=True)).to_contain_text('{"tenant":"a"}')
    console.check_accessible()
    console.check_width()
    page.get_by_role("button", name="Make visible: message 1").click()
    console.said("The message is visible again.")
    page.get_by_role("button", name="Receive up to 10").click()
    page.get_by_role("button", name="Delete: message 1").click()
    console.said("The message is deleted.")

    page.get_by_text("Set attributes").click()
    page.get_by_label("Attributes, as JSON; others").fill('{"OrderHint": "0"}')
    console.expect_failures()
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("OrderHint")
    page.get_by_label("Attributes, as JSON; others").fill('{"OrderHint": 9}')
    page.get_by_role("button", name="Set", exact=True).click()
    console.said("The attributes of paid are set.")
    expect(page.get_by_role("region", name="Order")).to_contain_text("9")

    page.get_by_role("button", name="Purge").first.click()
    console.confirm("Purge")
    console.said("Queue paid is purged.")
    page.get_by_role("button", name="Delete", exact=True).first.click()
    console.confirm("Delete", typed="paid")
    console.said("Queue paid is deleted.")
    expect(page.get_by_text("There is no queue yet.")).to_be_visible()


def test_dead_letters_go_back(front_end, open_console):
    arn = {}
    for name in ("letters", "dead"):
        call(front_end, "CreateQueue", QueueName=name)
        url = {"QueueUrl": f"/{ACCOUNT}/{name}"}
        arn[name] = call(front_end, "GetQueueAttributes", **url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = f'{{"deadLetterTargetArn": "{arn["dead"]}", "maxReceiveCount": 5}}'
    call(front_end, "SetQueueAttributes", QueueUrl=f"/{ACCOUNT}/letters", Attributes={"RedrivePolicy": policy})
    console = open_console(front_end)
    page = console.go("replicated", ACCOUNT, "dead")
    page.get_by_text("Move its dead letters").click()
    page.get_by_label("To the queue").fill("letters")
    page.get_by_role("button", name="Move", exact=True).click()
    console.said("The messages of dead go to letters.")
    expect(console.row("moves", "letters")).to_contain_text("completed")
    for name in ("letters", "dead"):
        call(front_end, "DeleteQueue", QueueUrl=f"/{ACCOUNT}/{name}")


def test_queues_of_all_classes_stand_in_one_table(beside, open_console):
    api = Management(beside.http)
    api.put("/api/queues/%2F/in-the-log", {"durable": True})
    call(beside, "CreateQueue", QueueName="in-cassandra", Attributes={"Class": "replicated"})
    api.put("/api/elastic/queues/in-relays", {})
    console = open_console(beside)
    page = console.go("queues")
    page.get_by_label("Search queues").fill("in-")
    for name, of_class in [("in-the-log", "ordered"), ("in-cassandra", "replicated"), ("in-relays", "elastic")]:
        expect(console.row("queues", name)).to_contain_text(of_class)
    console.check_accessible()
    console.row("queues", "in-cassandra").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("in-cassandra")
    console.go("queues")
    console.row("queues", "in-relays").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("in-relays")


def test_the_owner_of_an_account_has_its_queues_and_keys_and_no_cluster(front_end, open_console):
    admin = open_console(front_end)
    page = admin.go("accounts")
    page.get_by_text("Add an account").click()
    page.get_by_label("Account, twelve digits or a name").fill("birds")
    page.get_by_label("Password of its owner").fill("a-password")
    page.get_by_role("button", name="Add", exact=True).click()
    admin.said("Account birds is there.")
    call(front_end, "CreateQueue", QueueName="not-theirs")
    console = open_console(front_end, "birds", "a-password")
    page = console.go("queues")
    page.get_by_text("Create a replicated queue").click()
    page.get_by_label("Name; a FIFO").fill("nest.fifo")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("Queue of the account birds.")).to_be_visible()
    page.get_by_text("Send a message").click()
    page.get_by_label("Text", exact=True).fill("egg")
    page.get_by_label("Message group").fill("1")
    page.get_by_label("Deduplication id").fill("1")
    page.get_by_role("button", name="Send").click()
    console.said("The message is sent.")
    console.go("queues")
    expect(console.row("queues", "nest.fifo")).to_contain_text("FIFO")
    expect(page.get_by_text("not-theirs")).to_have_count(0)
    expect(page.get_by_role("navigation").get_by_role("link", name="Cluster")).to_have_count(0)
    page = console.go("accounts")
    expect(console.row("accounts", "birds")).to_have_count(1)
    expect(page.get_by_text("Add an account")).to_have_count(0)
    page.get_by_text("Make a key", exact=True).first.click()
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_text("Write the secret down now")).to_be_visible()
    expect(console.row("access keys", "birds")).to_contain_text("enabled")
    console.check_accessible()
    page.get_by_role("button", name="Disable the key").click()
    expect(console.row("access keys", "birds")).to_contain_text("disabled")
