//! Where a story is played: the commands and what they check.

use quelea_broker::{
    BrokerConfig, Browse, Consume, DeclareExchange, DeclareQueue, ExchangeBinding, Publish,
    QueueBinding,
};
use quelea_model::{Message, Properties, Table, Value};
use quelea_store::StoreState;

use crate::broker_test::{BrokerTest, Received, StoreKind};
use crate::line::{Line, body};
use crate::receipts::Callers;

pub(crate) struct Stage {
    store_kind: StoreKind,
    test: BrokerTest,
    on: String,
    callers: Callers,
    last: Option<Received>,
}

/// What a line answers, and why it fails.
pub(crate) type Outcome = Result<String, String>;

pub(crate) fn done() -> Outcome {
    Ok(String::new())
}

pub(crate) fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Stage {
    pub(crate) fn new(store_kind: StoreKind) -> Self {
        let test = BrokerTest::new(BrokerConfig::default(), store_kind);
        let callers = Callers::default();
        Self { store_kind, test, on: String::from("me"), callers, last: None }
    }

    /// Carries out what a line says. Returns its answer.
    pub(crate) fn perform(&mut self, line: &Line<'_>) -> Outcome {
        let outcome = match line.command {
            "on" => {
                line.word(0).clone_into(&mut self.on);
                done()
            }
            "config" => self.configure(line),
            "declare" | "delete" | "purge" => self.change_queue(line),
            "exchange" | "delete-exchange" | "bind" | "unbind" | "bind-exchange" => {
                self.change_routes(line)
            }
            "publish" => self.publish(line),
            "consume" => self.consume(line),
            "get" => return self.get(line),
            "look" => {
                let times = line.option("times").map_or(Ok(1), str::parse).map_err(said)?;
                return (0..times).try_fold(String::new(), |_, _: u32| self.look(line));
            }
            "ack" | "nack" | "reject" | "ack-all" | "ack-tag" => self.settle(line),
            "accepts" => {
                let accepts = self.test.broker.accepts_publishes();
                Ok(String::from(if accepts { "yes" } else { "no" }))
            }
            "count" => self.count(line),
            "total" => self.total(line),
            command if command.starts_with("expect") => self.expect(line),
            command if Callers::knows(command) => self.callers.perform(&mut self.test, line),
            _ => self.steer(line),
        };
        if line.command != "begin" && !line.has("hold") {
            self.test.settle();
            check(self.test.promises_are_kept(), || String::from("a ticket was not reached"))?;
        }
        outcome
    }

    fn configure(&mut self, line: &Line<'_>) -> Outcome {
        let mut config = BrokerConfig::default();
        for word in &line.words {
            let (key, value) = word.split_once('=').ok_or("config wants KEY=N")?;
            let value: usize = value.parse().map_err(said)?;
            match key {
                "resident" => config.resident_bytes_max = value,
                "index" => config.index_bytes_max = value,
                "held" => config.held_bytes_max = value,
                "read-ahead" => config.read_ahead_bytes_max = value,
                "output" => config.output_bytes_max = value,
                "unacked" => config.unacked_per_channel_max = value,
                "unacked-together" => config.unacked_per_connection_max = value,
                "consumers" => config.consumers_per_connection_max = value,
                "queues" => config.queues_per_vhost_max = value,
                "exclusive" => config.exclusive_queues_per_connection_max = value,
                _ => return Err(format!("no such limit: {key}")),
            }
        }
        self.test = BrokerTest::new(config, self.store_kind);
        done()
    }

    fn change_queue(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.test.now;
        let channel = self.test.client(&self.on).channel;
        let broker = &mut self.test.broker;
        let first = line.word(0).to_owned();
        let wants = line.answer.is_some();
        match line.command {
            "declare" => {
                let flags = ["durable", "exclusive", "auto-delete", "passive"];
                let request = DeclareQueue {
                    name: first.clone(),
                    durable: line.has("durable"),
                    exclusive: line.has("exclusive"),
                    auto_delete: line.has("auto-delete"),
                    passive: line.has("passive"),
                    arguments: line.arguments(&flags),
                    is_imported: false,
                };
                let declared = broker.declare_queue(now, channel, &request).map_err(said)?;
                self.test.promise(declared.ticket);
                if wants && declared.name.as_str() != first {
                    return Ok(declared.name.as_str()[..8].to_owned());
                }
                let answer = format!("{} {}", declared.messages, declared.consumers);
                Ok(if wants { answer } else { String::new() })
            }
            "delete" => {
                let (unused, empty) = (line.has("if-unused"), line.has("if-empty"));
                let deleted = broker.delete_queue(now, channel, &first, unused, empty);
                let deleted = deleted.map_err(said)?;
                self.test.promise(deleted.ticket);
                Ok(if wants { deleted.messages.to_string() } else { String::new() })
            }
            _ => {
                let purged = broker.purge_queue(now, channel, &first).map_err(said)?;
                self.test.promise(purged.ticket);
                Ok(if wants { purged.messages.to_string() } else { String::new() })
            }
        }
    }

    fn change_routes(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.test.now;
        let channel = self.test.client(&self.on).channel;
        let broker = &mut self.test.broker;
        let first = line.word(0).to_owned();
        let ticket = match line.command {
            "exchange" => {
                let flags = ["durable", "auto-delete", "internal", "passive"];
                let request = DeclareExchange {
                    name: first,
                    kind: line.word(1).to_owned(),
                    passive: line.has("passive"),
                    durable: line.has("durable"),
                    auto_delete: line.has("auto-delete"),
                    internal: line.has("internal"),
                    arguments: line.arguments(&flags),
                };
                broker.declare_exchange(now, channel, &request).map_err(said)?
            }
            "delete-exchange" => {
                let if_unused = line.has("if-unused");
                broker.delete_exchange(now, channel, &first, if_unused).map_err(said)?
            }
            "bind-exchange" => {
                let request = ExchangeBinding {
                    destination: first,
                    source: line.word(1).to_owned(),
                    routing_key: line.word(2).to_owned(),
                    arguments: line.arguments(&[]),
                };
                broker.bind_exchange(now, channel, &request).map_err(said)?
            }
            command => {
                let request = QueueBinding {
                    queue: first,
                    exchange: line.word(1).to_owned(),
                    routing_key: line.word(2).to_owned(),
                    arguments: line.arguments(&[]),
                };
                let bound = if command == "bind" {
                    broker.bind_queue(now, channel, &request)
                } else {
                    broker.unbind_queue(now, channel, &request)
                };
                bound.map_err(said)?
            }
        };
        self.test.promise(ticket);
        done()
    }

    fn publish(&mut self, line: &Line<'_>) -> Outcome {
        let keys = |text: &str| Value::Array(text.split(',').map(Value::text).collect());
        let flags = ["exchange", "persistent", "ttl", "priority", "cc", "bcc", "reply-to"];
        let others = ["user-id", "mandatory", "hold", "confirm"];
        let mut headers = line.arguments(&[&flags[..], &others[..]].concat());
        for (option, header) in [("cc", "CC"), ("bcc", "BCC")] {
            if let Some(text) = line.option(option) {
                headers.set(header, keys(text));
            }
        }
        let text = |option: &str| line.option(option).map(Box::from);
        let properties = Properties {
            headers: (!headers.is_empty()).then_some(headers),
            delivery_mode: line.has("persistent").then_some(2),
            priority: line.option("priority").map(|p| p.parse().expect("a priority")),
            reply_to: match line.option("reply-to") {
                Some("last") => self.last.as_ref().map(|l| Box::from(l.message.routing_key())),
                _ => text("reply-to"),
            },
            expiration: text("ttl"),
            user_id: text("user-id"),
            ..Properties::default()
        };
        let properties = properties.to_bytes();
        let key = match line.word(0) {
            "reply-address" => {
                let last = self.last.as_ref().ok_or("nothing was received yet")?;
                last.message.property_view().reply_to().ok_or("no reply-to")?.to_owned()
            }
            key => key.to_owned(),
        };
        let now = self.test.now;
        let channel = self.test.client(&self.on).channel;
        let mut answer = String::new();
        for word in &line.words[1..] {
            let published = self.test.broker.publish(
                now,
                channel,
                Publish {
                    exchange: line.option("exchange").unwrap_or_default(),
                    routing_key: &key,
                    properties: &properties,
                    body: body(word),
                    mandatory: line.has("mandatory"),
                    confirm: true,
                },
            );
            let published = published.map_err(said)?;
            self.test.promise(published.ticket);
            if published.rejected {
                answer = String::from("rejected");
            } else if !published.routed {
                answer = String::from("unrouted");
            }
        }
        Ok(answer)
    }

    fn consume(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.test.now;
        let channel = self.test.client(&self.on).channel;
        let mut arguments = Table::new();
        if let Some(priority) = line.option("priority") {
            arguments.set("x-priority", Value::I32(priority.parse().expect("a priority")));
        }
        let request = Consume {
            queue: line.word(0).to_owned(),
            consumer_tag: line.option("tag").unwrap_or_default().to_owned(),
            no_local: false,
            no_ack: line.has("no-ack"),
            exclusive: line.has("exclusive"),
            arguments,
        };
        self.test.broker.consume(now, channel, &request).map_err(said)?;
        done()
    }

    fn get(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.test.now;
        let channel = self.test.client(&self.on).channel;
        let no_ack = line.has("no-ack");
        self.test.broker.get(now, channel, line.word(0), no_ack).map_err(said)?;
        self.test.settle();
        match self.test.client(&self.on).got.pop_front() {
            None => Ok(String::from("pending")),
            Some(None) => Ok(String::from("empty")),
            Some(Some(received)) => {
                let again = if received.redelivered { "!" } else { "" };
                if no_ack {
                    self.test.client(&self.on).held.pop();
                }
                let answer = format!("{}{again}", name(&received));
                self.last = Some(received);
                Ok(answer)
            }
        }
    }

    /// Checks whether these are all that are ready, looked at by pages of `-page=N` messages.
    fn look(&mut self, line: &Line<'_>) -> Outcome {
        let page = line.option("page").map_or(Ok(usize::MAX), str::parse).map_err(said)?;
        let channel = self.test.client(&self.on).channel;
        let mut from = None;
        let mut seen = Vec::new();
        loop {
            let wanted = Browse { from, messages_max: page, body_bytes_max: usize::MAX };
            self.test.broker.browse(self.test.now, channel, line.word(0), wanted).map_err(said)?;
            self.test.settle();
            let looked_at = self.test.client(&self.on).looked_at.pop_front();
            let looked_at = looked_at.ok_or("nothing came")?;
            check(looked_at.messages.len() <= page, || String::from("a page is too long"))?;
            seen.extend(looked_at.messages.iter().map(|seen| {
                let again = if seen.redelivered { "!" } else { "" };
                format!("{}{again}", name_of(&seen.message))
            }));
            if looked_at.next.is_none() {
                break;
            }
            from = looked_at.next;
        }
        check(seen == line.words[1..], || format!("saw {}", seen.join(" ")))?;
        done()
    }

    fn settle(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.test.now;
        let (multiple, requeue) = (line.has("multiple"), line.has("requeue"));
        let client = self.test.client(&self.on);
        let channel = client.channel;
        let mut tags = Vec::new();
        for word in &line.words {
            match line.command {
                "ack-tag" => tags.push(word.parse().map_err(said)?),
                _ => {
                    let at = client.held.iter().position(|held| name(held) == *word);
                    let at = at.ok_or_else(|| format!("{word} is not held"))?;
                    tags.push(client.held.remove(at).delivery_tag);
                }
            }
        }
        if multiple {
            client.held.retain(|held| tags.iter().all(|tag| held.delivery_tag > *tag));
        }
        if line.command == "ack-all" {
            self.test.client(&self.on).held.clear();
            self.test.broker.ack(now, channel, 0, true).map_err(said)?;
        }
        let broker = &mut self.test.broker;
        for tag in tags {
            let result = match line.command {
                "ack" | "ack-tag" => broker.ack(now, channel, tag, multiple),
                "nack" => broker.nack(now, channel, tag, multiple, requeue),
                _ => broker.reject(now, channel, tag, requeue),
            };
            result.map_err(said)?;
        }
        done()
    }

    fn count(&mut self, line: &Line<'_>) -> Outcome {
        self.test.settle();
        let queue = self.test.broker.queue("/", line.word(0)).ok_or("no such queue")?;
        for word in &line.words[1..] {
            let at_least = word.contains(">=");
            let (fact, wanted) =
                word.split_once(if at_least { ">=" } else { "=" }).ok_or("count wants FACT=N")?;
            let wanted: u64 = wanted.parse().map_err(said)?;
            let counters = queue.counters;
            let is = match fact {
                "ready" => queue.messages_ready,
                "unacked" => queue.messages_unacknowledged,
                "consumers" => u64::from(queue.consumers),
                "with-credit" => u64::from(queue.consumers_with_credit),
                "resident" => queue.resident_bytes as u64,
                "in-transit" => queue.messages_in_transit,
                "expired" => counters.expired,
                "overflowed" => counters.overflowed,
                "redelivered" => counters.redeliver,
                "dead-lettered" => counters.dead_lettered,
                _ => return Err(format!("no such fact: {fact}")),
            };
            let holds = if at_least { is >= wanted } else { is == wanted };
            check(holds, || format!("{fact} is {is}"))?;
        }
        done()
    }

    fn total(&mut self, line: &Line<'_>) -> Outcome {
        self.test.settle();
        let overview = self.test.broker.overview();
        for word in &line.words {
            let at_most = word.contains("<=");
            let (fact, wanted) =
                word.split_once(if at_most { "<=" } else { "=" }).ok_or("total wants FACT=N")?;
            let wanted: u64 = wanted.parse().map_err(said)?;
            let is = match fact {
                "queues" => overview.queues as u64,
                "connections" => overview.connections as u64,
                "channels" => overview.channels as u64,
                "consumers" => overview.consumers as u64,
                "ready" => overview.messages_ready,
                "resident" => overview.resident_bytes as u64,
                "index" => overview.index_bytes as u64,
                "live" => overview.store.live,
                "dropped-letters" => overview.counters.dead_letters_dropped,
                "dropped-replies" => overview.counters.replies_dropped,
                _ => return Err(format!("no such fact: {fact}")),
            };
            let holds = if at_most { is <= wanted } else { is == wanted };
            check(holds, || format!("{fact} is {is}"))?;
        }
        done()
    }

    fn expect(&mut self, line: &Line<'_>) -> Outcome {
        self.test.settle();
        match line.command {
            "expect" => return self.expect_messages(line),
            "expect-cancelled" => {
                let cancelled = std::mem::take(&mut self.test.client(&self.on).cancelled);
                return check(cancelled == line.words, || format!("cancelled {cancelled:?}"));
            }
            "expect-closed" => {
                let closed = self.test.client(&self.on).closed.clone().unwrap_or_default();
                let wanted = line.words.join(" ");
                return check(closed.contains(&wanted), || format!("closed: {closed:?}"));
            }
            "expect-blocked" | "expect-unblocked" => {
                let blocked = std::mem::take(&mut self.test.blocked);
                let wanted = line.words.join(" ");
                let holds = match blocked.as_slice() {
                    [Some(reason)] => line.command == "expect-blocked" && reason.contains(&wanted),
                    [None] => line.command == "expect-unblocked",
                    _ => false,
                };
                return check(holds, || format!("blocked: {blocked:?}"));
            }
            _ => {}
        }
        let last = self.last.as_ref().ok_or("nothing was received yet")?;
        let headers = last.message.property_view().headers().unwrap_or_default();
        match line.command {
            "expect-header" => {
                let (header, wanted) = line.word(0).split_once('=').ok_or("wants NAME=V")?;
                let is = headers.get(header).map(text).unwrap_or_default();
                check(is == wanted, || format!("{header} is {is:?}"))
            }
            "expect-no-header" => {
                let is = headers.get(line.word(0));
                check(is.is_none(), || format!("it is {is:?}"))
            }
            "expect-key" => {
                let is = last.message.routing_key();
                check(is == line.word(0), || format!("the key is {is:?}"))
            }
            "expect-exchange" => {
                let is = last.message.exchange();
                check(is == line.word(0), || format!("the exchange is {is:?}"))
            }
            "expect-death" => {
                let at: usize = line.word(0).parse().map_err(said)?;
                let Some(Value::Array(deaths)) = headers.get("x-death") else {
                    return Err(String::from("no x-death"));
                };
                let Some(Value::Table(death)) = deaths.get(at - 1) else {
                    return Err(format!("{} deaths", deaths.len()));
                };
                for word in &line.words[1..] {
                    let (fact, wanted) = word.split_once('=').ok_or("wants FACT=V")?;
                    let is = death.get(fact).map(text).unwrap_or_default();
                    check(is == wanted, || format!("{fact} is {is:?}"))?;
                }
                done()
            }
            _ => Err(String::from("no such expectation")),
        }
    }

    fn expect_messages(&mut self, line: &Line<'_>) -> Outcome {
        let client = self.test.client(&self.on);
        let came: Vec<Received> = client.inbox.drain(..).collect();
        let said: Vec<String> = came
            .iter()
            .map(|received| {
                let again = if received.redelivered { "!" } else { "" };
                let tag = received.consumer_tag.as_deref().unwrap_or_default();
                let tag = if line.has("tags") { format!("{tag}:") } else { String::new() };
                format!("{tag}{}{again}", name(received))
            })
            .collect();
        self.last = came.last().cloned().or_else(|| self.last.take());
        check(said == line.words, || format!("came: {}", said.join(" ")))
    }

    /// Stops the broker, in one way or another, and starts it again.
    fn stop(&mut self, line: &Line<'_>) -> Outcome {
        match line.command {
            "shutdown" => self.test.shut_down(),
            "power-cut" => {
                let seeds: u64 = line.word(0).parse().map_err(said)?;
                (0..seeds).for_each(|seed| self.test.power_cut(seed));
            }
            _ => self.test.crash(line.option("down").map_or(Ok(0), str::parse).map_err(said)?),
        }
        done()
    }

    fn steer(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.test.now;
        let number = || line.word(0).parse::<u64>().map_err(said);
        match line.command {
            "wait" => self.test.wait(number()?),
            "crash" | "shutdown" | "power-cut" => return self.stop(line),
            "begin" => self.test.broker.begin_atomic(),
            "commit" => {
                self.test.broker.end_atomic();
            }
            "disk" => self.test.set_state(match line.word(0) {
                "full" => StoreState::Full { reason: String::from("no space left") },
                "failed" => StoreState::Failed { reason: String::from("input/output error") },
                _ => StoreState::Healthy,
            }),
            "prefetch" => {
                let (count, global) = (number()? as u16, line.has("global"));
                let channel = self.test.client(&self.on).channel;
                self.test.broker.set_prefetch(now, channel, count, global);
            }
            "recover" => {
                let client = self.test.client(&self.on);
                client.held.clear();
                let channel = client.channel;
                self.test.broker.recover(now, channel, true);
            }
            "cancel" => {
                let channel = self.test.client(&self.on).channel;
                if !self.test.broker.cancel(now, channel, line.word(0)) {
                    return Ok(String::from("unknown"));
                }
            }
            "close" => {
                let client = self.test.clients.remove(&self.on).ok_or("it is not open")?;
                self.test.broker.close_connection(now, client.connection);
            }
            "close-channel" => {
                let client = self.test.client(&self.on);
                let (connection, channel) = (client.connection, client.channel);
                client.held.clear();
                self.test.broker.close_channel(now, channel);
                let new = self.test.broker.open_channel(connection, 2).map_err(said)?;
                self.test.client(&self.on).channel = new;
            }
            "stop-reading" => self.test.client(&self.on).reads = false,
            "read" => {
                let client = self.test.client(&self.on);
                client.reads = true;
                let connection = client.connection;
                self.test.broker.output_drained(now, connection, usize::MAX);
            }
            "delete-vhost" => {
                self.test.broker.delete_vhost(now, line.word(0)).map_err(said)?;
            }
            "permit" => {
                let permissions = [1, 2, 3].map(|at| line.word(at).to_owned());
                let [configure, write, read] = permissions;
                let broker = &mut self.test.broker;
                let user = line.word(0);
                broker.set_permissions(now, user, "/", &configure, &write, &read).map_err(said)?;
            }
            command => return Err(format!("no such command: {command}")),
        }
        done()
    }
}

pub(crate) fn check(holds: bool, problem: impl FnOnce() -> String) -> Outcome {
    if holds { done() } else { Err(problem()) }
}

fn text(value: &Value) -> String {
    match value {
        Value::LongString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Timestamp(seconds) => seconds.to_string(),
        other => other.as_integer().map_or_else(|| format!("{other:?}"), |i| i.to_string()),
    }
}

fn name(received: &Received) -> String {
    name_of(&received.message)
}

fn name_of(message: &Message) -> String {
    let text = String::from_utf8_lossy(message.body()).into_owned();
    text.split('~').next().unwrap_or_default().to_owned()
}
