"use strict";
// The AWS SDK for JavaScript v3, which checks the checksums of what it sends and receives, against SQS_ENDPOINT.

const { test, before, after } = require("node:test");
const assert = require("node:assert/strict");
const { createHash, randomUUID } = require("node:crypto");
const sqs = require("@aws-sdk/client-sqs");

// A poll that came back before this did not sit out its 20 seconds.
const WOKEN_MS = 15_000;
const PATIENCE_MS = 60_000;
const made = [];
let client;

before(() => {
  client = new sqs.SQS({
    endpoint: process.env.SQS_ENDPOINT,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
  });
});

after(async () => {
  for (const QueueUrl of made) await client.deleteQueue({ QueueUrl }).catch(() => {});
  client.destroy();
});

async function queue(Attributes = {}, tags = undefined) {
  const QueueName = `js-${randomUUID()}${Attributes.FifoQueue ? ".fifo" : ""}`;
  const { QueueUrl } = await client.createQueue({ QueueName, Attributes, tags });
  made.push(QueueUrl);
  return QueueUrl;
}

const send = (QueueUrl, MessageBody, options = {}) => client.sendMessage({ QueueUrl, MessageBody, ...options });
const bodies = (messages) => messages.map((message) => message.Body);
const remove = (QueueUrl, messages) =>
  Promise.all(messages.map(({ ReceiptHandle }) => client.deleteMessage({ QueueUrl, ReceiptHandle })));

async function attribute(QueueUrl, name) {
  const { Attributes } = await client.getQueueAttributes({ QueueUrl, AttributeNames: [name] });
  return Attributes?.[name];
}

// Exactly `count` messages, by as many long polls as it takes.
async function receive(QueueUrl, count = 1, options = {}) {
  const got = [];
  const deadline = Date.now() + PATIENCE_MS;
  while (got.length < count) {
    assert.ok(Date.now() < deadline, `${got.length} of ${count} messages came`);
    const { Messages } = await client.receiveMessage({
      QueueUrl,
      MaxNumberOfMessages: Math.min(10, count - got.length),
      WaitTimeSeconds: 5,
      MessageAttributeNames: ["All"],
      MessageSystemAttributeNames: ["All"],
      ...options,
    });
    got.push(...(Messages ?? []));
  }
  return got;
}

test("a message goes through with its attributes", async () => {
  const url = await queue();
  const MessageAttributes = {
    text: { DataType: "String", StringValue: "grüße" },
    number: { DataType: "Number.int", StringValue: "42" },
    binary: { DataType: "Binary", BinaryValue: new Uint8Array([0, 1, 255]) },
  };
  const sent = await send(url, "a\t<b>& 😀", { MessageAttributes });
  assert.equal(sent.MD5OfMessageBody, createHash("md5").update("a\t<b>& 😀").digest("hex"));
  const [message] = await receive(url);
  assert.equal(message.Body, "a\t<b>& 😀");
  assert.equal(message.MessageId, sent.MessageId);
  assert.equal(message.MD5OfMessageAttributes, sent.MD5OfMessageAttributes);
  assert.equal(message.MessageAttributes.text.StringValue, "grüße");
  assert.deepEqual([...message.MessageAttributes.binary.BinaryValue], [0, 1, 255]);
  assert.equal(message.Attributes.ApproximateReceiveCount, "1");
  await remove(url, [message]);
  assert.equal(await attribute(url, "ApproximateNumberOfMessagesNotVisible"), "0");
});

test("a thousand messages sent at once are all there, once", async () => {
  const url = await queue();
  const batch = (start) =>
    client.sendMessageBatch({
      QueueUrl: url,
      Entries: Array.from({ length: 10 }, (_, n) => ({ Id: String(n), MessageBody: String(start + n) })),
    });
  await Promise.all(Array.from({ length: 100 }, (_, number) => batch(number * 10)));
  const got = new Set();
  const work = async () => {
    for (;;) {
      const { Messages } = await client.receiveMessage({ QueueUrl: url, MaxNumberOfMessages: 10 });
      if (!Messages?.length) return;
      for (const message of Messages) {
        assert.ok(!got.has(message.Body), `${message.Body} came twice`);
        got.add(message.Body);
      }
      await client.deleteMessageBatch({
        QueueUrl: url,
        Entries: Messages.map(({ ReceiptHandle }, n) => ({ Id: String(n), ReceiptHandle })),
      });
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  assert.equal(got.size, 1000);
});

test("queues are made, found, paged and deleted", async () => {
  const prefix = `js-list-${randomUUID()}-`;
  const urls = [];
  for (let number = 0; number < 7; number++) {
    urls.push((await client.createQueue({ QueueName: prefix + number })).QueueUrl);
  }
  made.push(...urls);
  assert.equal((await client.getQueueUrl({ QueueName: `${prefix}0` })).QueueUrl, urls[0]);
  const listed = [];
  for await (const page of sqs.paginateListQueues({ client, pageSize: 3 }, { QueueNamePrefix: prefix })) {
    listed.push(...(page.QueueUrls ?? []));
  }
  assert.deepEqual(listed.sort(), urls);
  await client.deleteQueue({ QueueUrl: urls[0] });
  await assert.rejects(client.getQueueUrl({ QueueName: `${prefix}0` }), sqs.QueueDoesNotExist);
});

test("attributes and tags are set and come back", async () => {
  const url = await queue({ DelaySeconds: "3" }, { a: "1" });
  assert.equal(await attribute(url, "DelaySeconds"), "3");
  await client.setQueueAttributes({ QueueUrl: url, Attributes: { VisibilityTimeout: "7" } });
  assert.equal(await attribute(url, "VisibilityTimeout"), "7");
  await client.tagQueue({ QueueUrl: url, Tags: { b: "2" } });
  await client.untagQueue({ QueueUrl: url, TagKeys: ["a"] });
  assert.deepEqual((await client.listQueueTags({ QueueUrl: url })).Tags, { b: "2" });
});

test("a batch fails each entry by its own", async () => {
  const url = await queue();
  const entry = (Id, DelaySeconds) => ({ Id, MessageBody: Id, DelaySeconds });
  const sent = await client.sendMessageBatch({ QueueUrl: url, Entries: [entry("a", 0), entry("b", 901), entry("c", 0)] });
  assert.deepEqual(sent.Successful.map((one) => one.Id).sort(), ["a", "c"]);
  assert.deepEqual(sent.Failed.map((one) => [one.Id, one.Code, one.SenderFault]), [["b", "InvalidParameterValue", true]]);
});

test("a visibility timeout is changed", async () => {
  const url = await queue();
  await send(url, "m");
  const [message] = await receive(url);
  await client.changeMessageVisibility({ QueueUrl: url, ReceiptHandle: message.ReceiptHandle, VisibilityTimeout: 1 });
  const [again] = await receive(url);
  assert.equal(again.Attributes.ApproximateReceiveCount, "2");
});

test("a long poll wakes", async () => {
  const url = await queue();
  const started = Date.now();
  const waiting = client.receiveMessage({ QueueUrl: url, WaitTimeSeconds: 20 });
  await send(url, "m");
  assert.deepEqual(bodies((await waiting).Messages), ["m"]);
  assert.ok(Date.now() - started < WOKEN_MS, "the poll slept until its end");
});

test("a FIFO queue keeps order and deduplicates", async () => {
  const url = await queue({ FifoQueue: "true", ContentBasedDeduplication: "true" });
  const sequence = [];
  for (const body of ["0", "1", "2", "2", "3"]) {
    sequence.push(BigInt((await send(url, body, { MessageGroupId: "g" })).SequenceNumber));
  }
  assert.equal(sequence[2], sequence[3]);
  assert.ok(sequence[0] < sequence[1] && sequence[1] < sequence[2] && sequence[3] < sequence[4]);
  const messages = await receive(url, 4);
  assert.deepEqual(bodies(messages), ["0", "1", "2", "3"]);
  assert.equal(messages[0].Attributes.MessageGroupId, "g");
});

test("poison goes to the dead-letter queue and back", async () => {
  const dead = await queue();
  const SourceArn = await attribute(dead, "QueueArn");
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: SourceArn, maxReceiveCount: 1 });
  const live = await queue({ RedrivePolicy, VisibilityTimeout: "0" });
  await send(live, "poison");
  await receive(live);
  assert.equal((await client.receiveMessage({ QueueUrl: live })).Messages, undefined);
  assert.deepEqual((await client.listDeadLetterSourceQueues({ QueueUrl: dead })).queueUrls, [live]);
  await client.startMessageMoveTask({ SourceArn });
  assert.deepEqual(bodies(await receive(live)), ["poison"]);
  assert.equal((await client.listMessageMoveTasks({ SourceArn })).Results.length, 1);
});

test("permissions are added and removed", async () => {
  const url = await queue();
  await client.addPermission({ QueueUrl: url, Label: "l", AWSAccountIds: ["111111111111"], Actions: ["SendMessage"] });
  assert.match(await attribute(url, "Policy"), /111111111111/);
  await client.removePermission({ QueueUrl: url, Label: "l" });
  assert.equal(await attribute(url, "Policy"), undefined);
});

test("errors have their classes", async () => {
  const url = await queue();
  const entry = { Id: "a", MessageBody: "m" };
  const cases = [
    [() => send(`${url}-nobody`, "m"), sqs.QueueDoesNotExist],
    [() => client.deleteMessage({ QueueUrl: url, ReceiptHandle: "rubbish" }), sqs.ReceiptHandleIsInvalid],
    [() => client.sendMessageBatch({ QueueUrl: url, Entries: [] }), sqs.EmptyBatchRequest],
    [() => client.sendMessageBatch({ QueueUrl: url, Entries: [entry, entry] }), sqs.BatchEntryIdsNotDistinct],
    [() => client.sendMessageBatch({ QueueUrl: url, Entries: [{ ...entry, Id: "a:b" }] }), sqs.InvalidBatchEntryId],
    [() => send(url, "\u0001"), sqs.InvalidMessageContents],
    [() => client.setQueueAttributes({ QueueUrl: url, Attributes: { Nonsense: "1" } }), sqs.InvalidAttributeName],
    [() => client.listMessageMoveTasks({ SourceArn: "arn:aws:sqs:us-east-1:000000000000:nobody" }), sqs.ResourceNotFoundException],
  ];
  for (const [call, kind] of cases) {
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof kind, `${error.name}: ${error.message} is no ${kind.name}`);
      assert.ok(error.$metadata.requestId);
      return true;
    });
  }
  await client.purgeQueue({ QueueUrl: url });
  await assert.rejects(client.purgeQueue({ QueueUrl: url }), sqs.PurgeQueueInProgress);
});
