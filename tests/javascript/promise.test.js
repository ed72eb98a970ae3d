"use strict";
// amqplib's promise API against the broker at AMQP_URL.

const { test, before, after } = require("node:test");
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const amqp = require("amqplib");

const URL = process.env.AMQP_URL;
let connection;

before(async () => {
  connection = await amqp.connect(URL);
});

after(() => connection.close());

// Resolves with the next `count` messages of a queue, acknowledged; the consumer is cancelled.
function take(channel, queue, count, options = {}) {
  return new Promise((resolve, reject) => {
    const taken = [];
    let tag;
    const onMessage = async (message) => {
      if (message === null) return reject(new Error("the consumer was cancelled"));
      taken.push(message);
      if (!options.noAck) channel.ack(message);
      if (taken.length === count) {
        await channel.cancel(tag);
        resolve(taken);
      }
    };
    tag = `take-${randomUUID()}`;
    channel.consume(queue, onMessage, { ...options, consumerTag: tag }).catch(reject);
  });
}

const texts = (messages) => messages.map((message) => message.content.toString());

test("a message goes through a queue with its properties", async () => {
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  channel.sendToQueue(queue, Buffer.from("hello"), {
    contentType: "text/plain",
    headers: { text: "grüße", number: 7, nested: { list: [1, "two", true, null] } },
    correlationId: "c",
    messageId: "m",
    priority: 3,
    timestamp: 1700000000,
  });
  const [message] = await take(channel, queue, 1);
  assert.equal(message.content.toString(), "hello");
  assert.equal(message.properties.contentType, "text/plain");
  assert.deepEqual(message.properties.headers, { text: "grüße", number: 7, nested: { list: [1, "two", true, null] } });
  assert.equal(message.properties.correlationId, "c");
  assert.equal(message.properties.timestamp, 1700000000);
  assert.equal(message.fields.redelivered, false);
  await channel.close();
});

test("confirms come for a thousand messages", async () => {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  for (let number = 0; number < 1000; number++) channel.sendToQueue(queue, Buffer.from(String(number)), { persistent: true });
  await channel.waitForConfirms();
  const messages = await take(channel, queue, 1000);
  assert.deepEqual(texts(messages), Array.from({ length: 1000 }, (_, number) => String(number)));
  await channel.close();
});

test("a full queue refuses and the confirm is an error", async () => {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true, maxLength: 1, arguments: { "x-overflow": "reject-publish" } });
  const publish = (body) =>
    new Promise((resolve) => channel.sendToQueue(queue, Buffer.from(body), {}, (error) => resolve(error === null)));
  assert.deepEqual([await publish("a"), await publish("b")], [true, false]);
  await channel.close();
});

test("a mandatory message without a queue comes back", async () => {
  const channel = await connection.createConfirmChannel();
  const returned = new Promise((resolve) => channel.once("return", resolve));
  channel.publish("", `nowhere-${randomUUID()}`, Buffer.from("m"), { mandatory: true });
  const message = await returned;
  assert.equal(message.fields.replyCode, 312);
  assert.equal(message.fields.replyText, "NO_ROUTE");
  await channel.waitForConfirms();
  await channel.close();
});

test("exchanges of all types route", async () => {
  const channel = await connection.createConfirmChannel();
  const cases = [
    ["direct", "key", {}, "key", {}, "other"],
    ["fanout", "", {}, "anything", {}, null],
    ["topic", "a.*.#", {}, "a.b.c", {}, "b.a"],
    ["headers", "", { "x-match": "all", h: "v" }, "", { h: "v" }, null],
  ];
  for (const [type, pattern, args, key, headers, miss] of cases) {
    const { exchange } = await channel.assertExchange(`js-${type}-${randomUUID()}`, type, { autoDelete: true, durable: false });
    const { queue } = await channel.assertQueue("", { exclusive: true });
    await channel.bindQueue(queue, exchange, pattern, args);
    channel.publish(exchange, key, Buffer.from("hit"), { headers });
    if (miss !== null) channel.publish(exchange, miss, Buffer.from("miss"));
    await channel.waitForConfirms();
    assert.equal((await channel.checkQueue(queue)).messageCount, 1, type);
    await channel.unbindQueue(queue, exchange, pattern, args);
  }
  await channel.close();
});

test("exchanges bind to exchanges", async () => {
  const channel = await connection.createConfirmChannel();
  const source = `js-source-${randomUUID()}`;
  const destination = `js-destination-${randomUUID()}`;
  await channel.assertExchange(source, "topic", { durable: false });
  await channel.assertExchange(destination, "fanout", { durable: false });
  await channel.bindExchange(destination, source, "#.end");
  const { queue } = await channel.assertQueue("", { exclusive: true });
  await channel.bindQueue(queue, destination, "");
  channel.publish(source, "the.end", Buffer.from("m"));
  assert.deepEqual(texts(await take(channel, queue, 1)), ["m"]);
  await channel.unbindExchange(destination, source, "#.end");
  await channel.deleteExchange(source);
  await channel.deleteExchange(destination);
  await channel.close();
});

test("prefetch, ack, nack and reject", async () => {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  for (let number = 0; number < 6; number++) channel.sendToQueue(queue, Buffer.from(String(number)));
  await channel.waitForConfirms();
  await channel.prefetch(2);
  const got = [];
  const done = new Promise((resolve, reject) => {
    channel
      .consume(queue, (message) => {
        got.push([message.content.toString(), message.fields.redelivered]);
        if (got.length === 1) channel.nack(message, false, true);
        else if (got.length === 2) channel.reject(message, false);
        else channel.ack(message);
        if (got.length === 7) resolve();
      })
      .catch(reject);
  });
  await done;
  assert.equal(got.filter(([, redelivered]) => redelivered).length, 1);
  assert.deepEqual([...new Set(got.map(([body]) => body))].sort(), ["0", "1", "2", "3", "4", "5"]);
  await channel.close();
});

test("get answers false when the queue is empty", async () => {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  assert.equal(await channel.get(queue), false);
  channel.sendToQueue(queue, Buffer.from("m"));
  await channel.waitForConfirms();
  const message = await channel.get(queue);
  assert.equal(message.content.toString(), "m");
  channel.nackAll(true);
  const again = await channel.get(queue, { noAck: true });
  assert.equal(again.fields.redelivered, true);
  await channel.close();
});

test("purge and delete tell how many", async () => {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  for (let number = 0; number < 3; number++) channel.sendToQueue(queue, Buffer.from("m"));
  await channel.waitForConfirms();
  assert.equal((await channel.purgeQueue(queue)).messageCount, 3);
  assert.equal((await channel.deleteQueue(queue)).messageCount, 0);
  await channel.close();
});

test("dead letters carry their death", async () => {
  const channel = await connection.createChannel();
  const dead = (await channel.assertQueue("", { exclusive: true })).queue;
  const { queue } = await channel.assertQueue("", { exclusive: true, messageTtl: 20, deadLetterExchange: "", deadLetterRoutingKey: dead });
  channel.sendToQueue(queue, Buffer.from("m"));
  const [message] = await take(channel, dead, 1);
  const [death] = message.properties.headers["x-death"];
  assert.deepEqual([death.reason, death.queue, death.count], ["expired", queue, 1]);
  await channel.close();
});

test("a consumer is cancelled when its queue is deleted", async () => {
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue("", { autoDelete: false, durable: false });
  const cancelled = new Promise((resolve) => {
    channel.consume(queue, (message) => message === null && resolve()).then(() => channel.deleteQueue(queue));
  });
  await cancelled;
  await channel.close();
});

test("an error closes the channel and not the connection", async () => {
  const channel = await connection.createChannel();
  const failed = new Promise((resolve) => channel.once("error", resolve));
  await assert.rejects(channel.checkQueue(`nowhere-${randomUUID()}`), /404|NOT_FOUND/);
  assert.equal((await failed).code, 404);
  const another = await connection.createChannel();
  await another.close();
});

test("a declaration that differs is refused", async () => {
  const name = `js-${randomUUID()}`;
  const channel = await connection.createChannel();
  await channel.assertQueue(name, { exclusive: true, durable: false });
  channel.on("error", () => {});
  await assert.rejects(channel.assertQueue(name, { exclusive: true, durable: false, messageTtl: 5 }), /PRECONDITION_FAILED/);
});

test("requests are answered by direct reply-to", async () => {
  const server = await connection.createChannel();
  const { queue } = await server.assertQueue("", { exclusive: true });
  await server.consume(queue, (message) => {
    server.sendToQueue(message.properties.replyTo, Buffer.from(`re: ${message.content}`), {
      correlationId: message.properties.correlationId,
    });
    server.ack(message);
  });
  const client = await connection.createChannel();
  const answer = new Promise((resolve) => client.consume("amq.rabbitmq.reply-to", resolve, { noAck: true }));
  client.sendToQueue(queue, Buffer.from("question"), { replyTo: "amq.rabbitmq.reply-to", correlationId: "1" });
  assert.equal((await answer).content.toString(), "re: question");
  await client.close();
  await server.close();
});

test("bodies of all sizes arrive whole", async () => {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  for (const size of [0, 1, 4088, 131064, 131065, 5_000_000]) {
    const body = Buffer.alloc(size, "quelea");
    channel.sendToQueue(queue, body);
    await channel.waitForConfirms();
    const message = await channel.get(queue, { noAck: true });
    assert.ok(message.content.equals(body), `${size} bytes`);
  }
  await channel.close();
});

test("a connection in small frames with heartbeats stays", async () => {
  const url = new globalThis.URL(URL);
  url.search = "frameMax=4096&heartbeat=1&channelMax=10";
  const small = await amqp.connect(url.toString());
  const channel = await small.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  const body = Buffer.alloc(50_000, "small frames ");
  channel.sendToQueue(queue, body);
  await channel.waitForConfirms();
  // Longer than two heartbeats: the messages' own time to live is the clock.
  const dead = (await channel.assertQueue("", { exclusive: true })).queue;
  const timer = await channel.assertQueue("", { exclusive: true, messageTtl: 2500, deadLetterExchange: "", deadLetterRoutingKey: dead });
  channel.sendToQueue(timer.queue, Buffer.from("tick"));
  await take(channel, dead, 1);
  const message = await channel.get(queue, { noAck: true });
  assert.ok(message.content.equals(body));
  await small.close();
});

test("wrong credentials and a wrong vhost are refused", async () => {
  const url = new globalThis.URL(URL);
  url.password = "wrong";
  await assert.rejects(amqp.connect(url.toString()), /ACCESS[_-]REFUSED|403/);
  url.password = "guest";
  url.pathname = "/nowhere";
  await assert.rejects(amqp.connect(url.toString()), /NOT[_-]ALLOWED|530|vhost|ConnectionClose/);
});

test("many channels work side by side", async () => {
  const channels = await Promise.all(Array.from({ length: 50 }, () => connection.createConfirmChannel()));
  const counts = await Promise.all(
    channels.map(async (channel) => {
      const { queue } = await channel.assertQueue("", { exclusive: true });
      for (let number = 0; number < 20; number++) channel.sendToQueue(queue, Buffer.from("m"));
      await channel.waitForConfirms();
      return (await take(channel, queue, 20)).length;
    }),
  );
  assert.deepEqual(counts, Array(50).fill(20));
  await Promise.all(channels.map((channel) => channel.close()));
});

test("recover brings messages back", async () => {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue("", { exclusive: true });
  channel.sendToQueue(queue, Buffer.from("m"));
  await channel.waitForConfirms();
  await channel.get(queue);
  await channel.recover();
  const message = await channel.get(queue, { noAck: true });
  assert.equal(message.fields.redelivered, true);
  await channel.close();
});
