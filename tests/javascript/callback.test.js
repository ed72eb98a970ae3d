"use strict";
// amqplib's callback API against the broker at AMQP_URL.

const { test } = require("node:test");
const assert = require("node:assert/strict");
const { promisify } = require("node:util");
const amqp = require("amqplib/callback_api");

const URL = process.env.AMQP_URL;

test("work is shared by two workers", (_, done) => {
  amqp.connect(URL, (error, connection) => {
    assert.ifError(error);
    connection.createConfirmChannel((error, channel) => {
      assert.ifError(error);
      channel.assertQueue("", { exclusive: true }, (error, { queue }) => {
        assert.ifError(error);
        const seen = new Map();
        const counts = [0, 0];
        const onMessage = (worker) => (message) => {
          counts[worker]++;
          seen.set(message.content.toString(), worker);
          channel.ack(message);
          if (seen.size < 100) return;
          assert.ok(counts[0] > 0 && counts[1] > 0, `shared as ${counts}`);
          connection.close(done);
        };
        channel.prefetch(5);
        channel.consume(queue, onMessage(0), {}, () => {
          channel.consume(queue, onMessage(1), {}, () => {
            for (let number = 0; number < 100; number++) channel.sendToQueue(queue, Buffer.from(String(number)));
          });
        });
      });
    });
  });
});

test("each confirm calls back once", async () => {
  const connection = await promisify(amqp.connect)(URL);
  const channel = await promisify(connection.createConfirmChannel.bind(connection))();
  const { queue } = await promisify(channel.assertQueue.bind(channel))("", { exclusive: true });
  const calls = Array(200).fill(0);
  await Promise.all(
    calls.map(
      (_, number) =>
        new Promise((resolve, reject) =>
          channel.sendToQueue(queue, Buffer.from("m"), { persistent: true }, (error) => {
            calls[number]++;
            return error ? reject(error) : resolve();
          }),
        ),
    ),
  );
  assert.deepEqual(calls, Array(200).fill(1));
  await promisify(connection.close.bind(connection))();
});

test("publishing to an exchange that is not there closes the channel", (_, done) => {
  amqp.connect(URL, (error, connection) => {
    assert.ifError(error);
    connection.createChannel((error, channel) => {
      assert.ifError(error);
      channel.on("error", (closed) => {
        assert.equal(closed.code, 404);
        connection.close(done);
      });
      channel.publish("no-such-exchange", "", Buffer.from("m"));
    });
  });
});

test("an exclusive queue is locked for another connection", (_, done) => {
  amqp.connect(URL, (error, owner) => {
    assert.ifError(error);
    owner.createChannel((error, channel) => {
      assert.ifError(error);
      channel.assertQueue("", { exclusive: true }, (error, { queue }) => {
        assert.ifError(error);
        amqp.connect(URL, (error, other) => {
          assert.ifError(error);
          other.createChannel((error, intruder) => {
            assert.ifError(error);
            intruder.on("error", (closed) => {
              assert.equal(closed.code, 405);
              other.close(() => owner.close(done));
            });
            intruder.checkQueue(queue);
          });
        });
      });
    });
  });
});
