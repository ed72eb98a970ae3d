"""Four bytes flipped anywhere in a real data directory: no outcome is silent.

Either the start is refused and says what is damaged, or every confirmed message is delivered or named in the
broker's log at WARN or ERROR. QUELEA_DAMAGE_PLACES places (8 unless told otherwise), half of them after a clean stop
and half after `kill -9` of an idle broker, among QUELEA_DAMAGE_MESSAGES messages (4,001); QUELEA_DAMAGE_SEED
moves them. `make soak` has it do 48 among 20,001.
"""

import os
import random
import re
import shutil
import struct
import urllib.request

import pytest
from harness.amqp import frames
from harness.amqp.frames import Raw
from harness.amqp.peer import until
from harness.broker import Broker, BrokerError, binary_path
from harness.management import Management, Refused

pytestmark = pytest.mark.process

PLACES = int(os.environ.get("QUELEA_DAMAGE_PLACES", "8"))
MESSAGES = int(os.environ.get("QUELEA_DAMAGE_MESSAGES", "4001"))
SEED = int(os.environ.get("QUELEA_DAMAGE_SEED", "1"))
WINDOW = 500
BODY_BYTES = 600
SETTINGS = {"QUELEA__LOG__SEGMENT_BYTES": "1MiB"}
ACCEPTING = {**SETTINGS, "QUELEA__LOG__ACCEPT_DAMAGE": "true"}
QUEUE = "orders"
TX_SELECT, TX_SELECT_OK, TX_COMMIT, TX_COMMIT_OK = (90, 10), (90, 11), (90, 20), (90, 21)
LOUD = re.compile(r"\b(WARN|ERROR)\b")
NAMES = [
    (re.compile(r"\bmessage (\d+) cannot be delivered"), 1, 1),
    (re.compile(r"\d+ messages from (\d+) to (\d+) cannot be delivered"), 1, 2),
    (re.compile(r"lost: [^;]*?, number (\d+)"), 1, 1),
    (re.compile(r"lost: [^;]*?, numbers from (\d+) to (\d+)"), 1, 2),
    (re.compile(r"lost: [^;]*?, numbers from (\d+) on"), 1, None),
]
"""How the broker's log names messages that are lost, by their numbers in the log: the first and the last."""


def number_body(number):
    text = b"%06d " % number
    return text + bytes(random.Random(number).choices(range(33, 127), k=BODY_BYTES - len(text)))


def fill(broker):
    """Publishes the messages, numbered from 1 as the log numbers them, and waits for all confirms."""
    with Raw.opened(broker) as client:
        client.send(frames.declare(1, QUEUE, 2))
        client.expect(frames.QUEUE_DECLARE_OK)
        client.send(frames.method(1, frames.CONFIRM_SELECT, b"\0"))
        client.expect(frames.CONFIRM_SELECT_OK)
        sent = confirmed = 0
        while confirmed < MESSAGES:
            while sent < MESSAGES and sent - confirmed < WINDOW:
                sent += 1
                client.send(persistent(sent))
            confirmed = struct.unpack_from(">Q", client.expect(frames.ACK))[0]


def batches(broker) -> int:
    return int(re.search(r"^quelea_log_batches_total (\d+)", metrics(broker), re.MULTILINE).group(1))


def metrics(broker) -> str:
    with urllib.request.urlopen(broker.http + "/metrics", timeout=20) as answer:
        return answer.read().decode()


def wait_until_idle(broker):
    """The broker says in its log that all is on the disk: one more batch, and none after it."""
    before = batches(broker)
    until(lambda: batches(broker) > before, "the commit of an idle broker")


@pytest.fixture(scope="module", params=["stopped", "killed"])
def image(request, tmp_path_factory):
    """A data directory as a clean stop leaves it, or a kill."""
    directory = tmp_path_factory.mktemp(request.param)
    with Broker(binary_path(), directory, SETTINGS) as broker:
        fill(broker)
        if request.param == "stopped":
            assert broker.terminate() == 0
        else:
            wait_until_idle(broker)
            broker.kill()
        yield request.param, broker.data_dir


def used_bytes(path) -> int:
    return len(path.read_bytes().rstrip(b"\0"))


def places(data_dir, count, offset):
    """(file, offset) spread over all that was written, each somewhere in its share of it."""
    files = [path for path in sorted(data_dir.rglob("*")) if path.name.startswith(("segment-", "checkpoint-"))]
    used = [(path, used_bytes(path)) for path in files]
    total = sum(size for _, size in used)
    somewhere = random.Random(SEED + offset)
    for share in range(count):
        at = int((share + somewhere.random()) * total / count)
        for path, size in used:
            if at < size:
                yield path.relative_to(data_dir), at
                break
            at -= size


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        data = file.read(4)
        file.seek(at)
        file.write(bytes(byte ^ 0x5A for byte in data))


def delivered(broker) -> set[int]:
    """The numbers of all messages that the queue gives, each with the body that it had."""
    numbers = set()
    with Raw.opened(broker, timeout_s=60) as client:
        while True:
            client.send(frames.method(1, frames.GET, b"\0\0" + frames.short(QUEUE) + b"\0") * 200)
            empty = False
            for _ in range(200):
                which, _, _ = client.read_method()
                if which == frames.GET_EMPTY:
                    empty = True
                    continue
                size = struct.unpack_from(">Q", client.read_frame()[2], 4)[0]
                data = b""
                while len(data) < size:
                    data += client.read_frame()[2]
                number = int(data[:6])
                assert data == number_body(number), f"message {number} is not what was published"
                numbers.add(number)
            if empty:
                return numbers


def named(log) -> set[int]:
    """The numbers that the log names at WARN or ERROR."""
    numbers = set()
    for line in re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines():
        if not LOUD.search(line):
            continue
        for pattern, first, last in NAMES:
            for match in pattern.finditer(line):
                end = MESSAGES if last is None else int(match.group(last))
                numbers.update(range(int(match.group(first)), min(end, MESSAGES) + 1))
    return numbers


def check_counted(broker, missing):
    """What was set aside while it was read is seen in the API, by a health check and in the metrics."""
    api = Management(broker.http)
    assert api.get("/api/overview")["queue_totals"]["messages_unreadable"] == missing
    assert api.get(f"/api/queues/%2F/{QUEUE}")["messages_unreadable"] == missing
    with pytest.raises(Refused) as refused:
        api.get("/api/health/checks/unreadable-messages")
    assert refused.value.status == 503 and f"{missing} messages cannot be read" in refused.value.body
    assert f"quelea_messages_unreadable {missing}\n" in metrics(broker)


def check_damaged(directory, data_dir, file, at) -> str:
    """Starts a broker on a damaged copy; returns how it ended: `refused`, `named` or `whole`, and whether it had to be accepted."""
    shutil.copytree(data_dir, directory / "data")
    flip(directory / "data" / file, at)
    outcome = "served"
    broker = Broker(binary_path(), directory, SETTINGS)
    try:
        broker.start()
    except BrokerError as refusal:
        text = str(refusal)
        assert "damaged" in text or "missing" in text or "format version" in text, text
        outcome = "accepted"
        broker = Broker(binary_path(), directory, ACCEPTING)
        try:
            broker.start()
        except BrokerError as refusal:
            # A header, or a checkpoint: nothing is served, and it says so.
            assert "damaged" in str(refusal) or "format version" in str(refusal), refusal
            return "refused"
    with_what_place = f"four bytes at {at} of {file}, {outcome}"
    try:
        missing = set(range(1, MESSAGES + 1)) - delivered(broker)
        silent = missing - named(broker.log.read_text(errors="replace"))
        assert not silent, f"{with_what_place}: {len(silent)} messages are gone without a word: {sorted(silent)[:10]}\n{broker.log_tail()}"
        if missing and outcome == "served":
            check_counted(broker, len(missing))
    finally:
        broker.close()
    return f"{outcome}: {'named' if missing else 'whole'}"


def test_flipped_bytes_are_never_silent(image, tmp_path):
    how, data_dir = image
    outcomes = []
    for number, (file, at) in enumerate(places(data_dir, (PLACES + 1) // 2, how == "killed")):
        directory = tmp_path / str(number)
        directory.mkdir()
        outcomes.append(check_damaged(directory, data_dir, file, at))
        shutil.rmtree(directory)
    print(how, {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))})
    # Bodies are most of what there is.
    assert any("named" in outcome for outcome in outcomes), outcomes


def publish_each(client, numbers):
    """Publishes these, each when the one before is confirmed: so each has a commit of its own."""
    for number in numbers:
        client.send(persistent(number))
        client.expect(frames.ACK)


def persistent(number) -> bytes:
    data = number_body(number)
    head = struct.pack(">HHQ", 60, 0, len(data)) + b"\x10\x00\x02"
    return frames.publish(1, QUEUE) + frames.frame(frames.HEADER, 1, head) + frames.body(1, data)


def place_of(data_dir, number):
    """The segment that has this message's body, and where in it."""
    body = number_body(number)
    (found,) = [(path, at) for path in sorted(data_dir.rglob("segment-*")) if (at := path.read_bytes().find(body)) >= 0]
    return found


def loud_lines(broker, words) -> list[str]:
    log = re.sub(r"\x1b\[[0-9;]*m", "", broker.log.read_text(errors="replace"))
    return [line for line in log.splitlines() if words in line and LOUD.search(line)]


@pytest.fixture
def three_confirmed(tmp_path):
    """A broker that has three messages, each in a batch of its own, and the client that published them."""
    with Broker(binary_path(), tmp_path, SETTINGS) as broker, Raw.opened(broker) as client:
        client.send(frames.declare(1, QUEUE, 2))
        client.expect(frames.QUEUE_DECLARE_OK)
        client.send(frames.method(1, frames.CONFIRM_SELECT, b"\0"))
        client.expect(frames.CONFIRM_SELECT_OK)
        publish_each(client, (1, 2, 3))
        yield broker


def test_what_a_start_leaves_out_is_named_by_queue_and_message(three_confirmed, tmp_path):
    wait_until_idle(three_confirmed)
    three_confirmed.kill()
    segment, at = place_of(three_confirmed.data_dir, 2)
    flip(segment, at + BODY_BYTES // 2)
    with Broker(binary_path(), tmp_path, ACCEPTING) as broker:
        (line,) = loud_lines(broker, "started without what is lost")
        assert f"{segment.name} is damaged at byte " in line
        assert f"; lost: 1 of queue {QUEUE} in /, number 2;" in line, line
        assert delivered(broker) == {1, 3}


def test_a_message_that_cannot_be_read_is_named_with_its_place(three_confirmed, tmp_path):
    assert three_confirmed.terminate() == 0
    segment, at = place_of(three_confirmed.data_dir, 2)
    flip(segment, at + BODY_BYTES // 2)
    with Broker(binary_path(), tmp_path, SETTINGS) as broker:
        assert delivered(broker) == {1, 3}
        (line,) = loud_lines(broker, "cannot be delivered")
    assert " ERROR " in line and "message 2 cannot be delivered: the log is damaged" in line
    for field in ('vhost="/"', f'queue="{QUEUE}"', f'file="{segment.name}"', f"segment={int(segment.name.split('-')[1])} "):
        assert field in line, line
    offset = int(re.search(r"\boffset=(\d+)", line)[1])
    # Where its record begins, which has a few words before the body.
    assert at - 200 < offset < at, line


def test_the_end_that_a_crash_tore_off_is_counted_in_a_warning(three_confirmed, tmp_path):
    with Raw.opened(three_confirmed) as client:
        client.send(frames.method(1, TX_SELECT))
        client.expect(TX_SELECT_OK)
        # One commit for all.
        client.send(b"".join(map(persistent, (4, 5, 6))) + frames.method(1, TX_COMMIT))
        client.expect(TX_COMMIT_OK)
    three_confirmed.kill()
    segment, at = place_of(three_confirmed.data_dir, 6)
    content = segment.read_bytes()
    cut = at + BODY_BYTES // 2
    segment.write_bytes(content[:cut] + bytes(len(content) - cut))
    with Broker(binary_path(), tmp_path, SETTINGS) as broker:
        (line,) = loud_lines(broker, "the end of the log was cut off")
        assert " WARN " in line
        records, name = re.search(r"(\d+) records or more from byte \d+ of (\S+) on", line).groups()
        assert int(records) >= 2 and name == segment.name
        assert delivered(broker) == {1, 2, 3}
