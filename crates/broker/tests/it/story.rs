//! The small language of the stories.
//!
//! A file holds scenes, each begun by a line `== what it shows`. A line is a command, its words and
//! its `-options`; `=> text` at its end says that it fails with that text, or what it answers. After
//! each line the broker runs until nothing is left to do. `#` begins a comment.
//!
//! | command | does |
//! |---|---|
//! | `on NAME` | goes on as this client: a connection with one channel |
//! | `config KEY=N …` | before all else: a broker with these limits |
//! | `declare Q -durable -exclusive -auto-delete -passive -x-…=V` | queue.declare |
//! | `delete Q -if-unused -if-empty`, `purge Q` | |
//! | `exchange E KIND -durable -auto-delete -internal -alternate-exchange=E` | exchange.declare |
//! | `bind Q E KEY -ARG=V`, `unbind …`, `bind-exchange TO FROM KEY` | |
//! | `publish Q BODY… -exchange=E -persistent -ttl=MS -priority=N -cc=K,K -bcc=K -reply-to=K -user-id=U -mandatory` | with key `Q` |
//! | `consume Q -tag=T -no-ack -exclusive -priority=N`, `cancel T` | |
//! | `prefetch N -global`, `flow on`, `flow off`, `recover` | |
//! | `expect BODY…` | exactly these came since the last time; `BODY!` is a redelivery; none: nothing came |
//! | `expect-header NAME=V`, `expect-no-header NAME`, `expect-key K`, `expect-exchange E`, `expect-death N FACT=V …` | about the last message that was expected or got |
//! | `expect-cancelled T…`, `expect-blocked TEXT`, `expect-unblocked`, `expect-closed TEXT` | |
//! | `get Q -no-ack => BODY` or `=> empty` | |
//! | `ack BODY… -multiple`, `nack BODY… -requeue -multiple`, `reject BODY -requeue`, `ack-all`, `ack-tag N` | |
//! | `count Q ready=N unacked=N consumers=N`, `total FACT=N` | |
//! | `wait MS`, `crash`, `close`, `close-channel`, `begin`, `commit`, `stop-reading`, `read` | |
//! | `disk full`, `disk failed`, `disk healthy` | |
//!
//! `BODY` may be `m{1..9}` for nine of them, and `a~500` for one of 500 bytes named `a`.

use std::collections::BTreeMap;

use bytes::Bytes;
use quelea_broker::{
    BrokerConfig, Consume, DeclareExchange, DeclareQueue, ExchangeBinding, Publish, QueueBinding,
};
use quelea_model::{Properties, Table, Value};
use quelea_store::StoreState;

use crate::world::{Received, World};

pub(crate) struct Story {
    pub(crate) place: String,
    lines: Vec<(usize, String)>,
}

/// One line, taken apart.
struct Line<'a> {
    command: &'a str,
    words: Vec<String>,
    options: BTreeMap<String, String>,
    answer: Option<String>,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Self {
        let (text, answer) = match text.split_once("=>") {
            Some((text, answer)) => (text, Some(answer.trim().to_owned())),
            None => (text, None),
        };
        let mut parts = text.split_whitespace();
        let command = parts.next().unwrap_or_default();
        let mut words = Vec::new();
        let mut options = BTreeMap::new();
        for part in parts {
            match part.strip_prefix('-').filter(|rest| rest.starts_with(char::is_alphabetic)) {
                Some(option) => {
                    let (name, value) = option.split_once('=').unwrap_or((option, ""));
                    options.insert(name.to_owned(), value.to_owned());
                }
                None => words.extend(expand(part)),
            }
        }
        Self { command, words, options, answer }
    }

    fn has(&self, option: &str) -> bool {
        self.options.contains_key(option)
    }

    fn option(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| if word == "''" { "" } else { word })
    }

    /// Options that are no flags of the command itself.
    fn arguments(&self, flags: &[&str]) -> Table {
        let mut table = Table::new();
        for (name, text) in &self.options {
            if flags.contains(&name.as_str()) {
                continue;
            }
            let value = match (text.parse::<i32>(), text.as_str()) {
                (Ok(number), _) => Value::I32(number),
                (_, "true") => Value::Bool(true),
                (_, "false") => Value::Bool(false),
                (_, "''") => Value::text(""),
                _ => Value::text(text),
            };
            table.set(name, value);
        }
        table
    }
}

/// `m{1..3}` is `m1 m2 m3`.
fn expand(word: &str) -> Vec<String> {
    let range = word.split_once('{').and_then(|(prefix, rest)| {
        let (range, suffix) = rest.split_once('}')?;
        let (from, to) = range.split_once("..")?;
        Some((prefix, from.parse::<u32>().ok()?, to.parse::<u32>().ok()?, suffix))
    });
    match range {
        Some((prefix, from, to, suffix)) => {
            (from..=to).map(|n| format!("{prefix}{n}{suffix}")).collect()
        }
        None => vec![word.to_owned()],
    }
}

/// `a~500` is `a` and so many `~` that it has 500 bytes.
fn body(word: &str) -> Bytes {
    match word.split_once('~') {
        Some((name, size)) => {
            let size: usize = size.parse().expect("a size follows ~");
            Bytes::from(format!("{name:~<size$}"))
        }
        None => Bytes::copy_from_slice(word.as_bytes()),
    }
}

fn name(received: &Received) -> String {
    let text = String::from_utf8_lossy(received.message.body()).into_owned();
    text.split('~').next().unwrap_or_default().to_owned()
}

impl Story {
    pub(crate) fn parse(file: &str, text: &str) -> Vec<Self> {
        let mut scenes: Vec<Self> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match (line.strip_prefix("== "), scenes.last_mut()) {
                (Some(title), _) => {
                    scenes.push(Self { place: format!("{file}: {title}"), lines: Vec::new() });
                }
                (None, Some(scene)) => scene.lines.push((at + 1, line.to_owned())),
                (None, None) => panic!("{file} has to begin with a scene"),
            }
        }
        scenes
    }

    /// Plays the scene; the error says which line did not come true, and why.
    pub(crate) fn play(&self) -> Result<(), String> {
        let mut stage = Stage::new();
        for (at, text) in &self.lines {
            let line = Line::parse(text);
            let result = stage.perform(&line);
            let problem = match (result, &line.answer) {
                (Ok(answer), None) if answer.is_empty() => continue,
                (Ok(answer), Some(wanted)) if answer == *wanted => continue,
                (Ok(answer), wanted) => format!("answered {answer:?}, wanted {wanted:?}"),
                (Err(error), Some(wanted)) if error.contains(wanted.as_str()) => continue,
                (Err(error), wanted) => format!("failed: {error}; wanted {wanted:?}"),
            };
            return Err(format!("{}, line {at}: {text}\n    {problem}", self.place));
        }
        Ok(())
    }
}

struct Stage {
    world: World,
    on: String,
    last: Option<Received>,
}

/// What a line answers, and why it fails.
type Outcome = Result<String, String>;

fn done() -> Outcome {
    Ok(String::new())
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Stage {
    fn new() -> Self {
        Self { world: World::new(BrokerConfig::default()), on: String::from("me"), last: None }
    }

    fn perform(&mut self, line: &Line<'_>) -> Outcome {
        let outcome = match line.command {
            "on" => {
                line.word(0).clone_into(&mut self.on);
                done()
            }
            "config" => self.configure(line),
            "declare" | "delete" | "purge" | "exchange" | "delete-exchange" | "bind" | "unbind"
            | "bind-exchange" => self.change_topology(line),
            "publish" => self.publish(line),
            "consume" => self.consume(line),
            "get" => return self.get(line),
            "ack" | "nack" | "reject" | "ack-all" | "ack-tag" => self.settle(line),
            "count" => self.count(line),
            "total" => self.total(line),
            command if command.starts_with("expect") => self.expect(line),
            _ => self.steer(line),
        };
        if line.command != "begin" && !line.has("hold") {
            self.world.settle();
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
                "read-ahead" => config.read_ahead_bytes_max = value,
                "output" => config.output_bytes_max = value,
                "unacked" => config.unacked_per_channel_max = value,
                "queues" => config.queues_per_vhost_max = value,
                "exclusive" => config.exclusive_queues_per_connection_max = value,
                _ => return Err(format!("no such limit: {key}")),
            }
        }
        self.world = World::new(config);
        done()
    }

    fn change_topology(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.world.now;
        let channel = self.world.client(&self.on).channel;
        let broker = &mut self.world.broker;
        let first = line.word(0).to_owned();
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
                };
                let declared = broker.declare_queue(now, channel, &request).map_err(said)?;
                let made_up = declared.name.as_str() != first;
                return Ok(match line.answer {
                    Some(_) if made_up => declared.name.as_str()[..8].to_owned(),
                    Some(_) => format!("{} {}", declared.messages, declared.consumers),
                    None => String::new(),
                });
            }
            "delete" => {
                let (unused, empty) = (line.has("if-unused"), line.has("if-empty"));
                let deleted = broker.delete_queue(now, channel, &first, unused, empty);
                let deleted = deleted.map_err(said)?;
                if line.answer.is_some() {
                    return Ok(deleted.messages.to_string());
                }
            }
            "purge" => {
                let purged = broker.purge_queue(now, channel, &first).map_err(said)?;
                if line.answer.is_some() {
                    return Ok(purged.messages.to_string());
                }
            }
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
                broker.declare_exchange(now, channel, &request).map_err(said)?;
            }
            "delete-exchange" => {
                broker
                    .delete_exchange(now, channel, &first, line.has("if-unused"))
                    .map_err(said)?;
            }
            "bind-exchange" => {
                let request = ExchangeBinding {
                    destination: first,
                    source: line.word(1).to_owned(),
                    routing_key: line.word(2).to_owned(),
                    arguments: line.arguments(&[]),
                };
                broker.bind_exchange(now, channel, &request).map_err(said)?;
            }
            _ => {
                let request = QueueBinding {
                    queue: first,
                    exchange: line.word(1).to_owned(),
                    routing_key: line.word(2).to_owned(),
                    arguments: line.arguments(&[]),
                };
                let bound = if line.command == "bind" {
                    broker.bind_queue(now, channel, &request)
                } else {
                    broker.unbind_queue(now, channel, &request)
                };
                bound.map_err(said)?;
            }
        }
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
        let now = self.world.now;
        let channel = self.world.client(&self.on).channel;
        let mut answer = String::new();
        for word in &line.words[1..] {
            let published = self.world.broker.publish(
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
            if !self.world.broker.progress().reached(published.ticket) {
                return Err(String::from("the store in memory reaches tickets at once"));
            }
            if published.rejected {
                answer = String::from("rejected");
            } else if !published.routed {
                answer = String::from("unrouted");
            }
        }
        Ok(answer)
    }

    fn consume(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.world.now;
        let channel = self.world.client(&self.on).channel;
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
        self.world.broker.consume(now, channel, &request).map_err(said)?;
        done()
    }

    fn get(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.world.now;
        let channel = self.world.client(&self.on).channel;
        let no_ack = line.has("no-ack");
        self.world.broker.get(now, channel, line.word(0), no_ack).map_err(said)?;
        self.world.settle();
        match self.world.client(&self.on).got.pop_front() {
            None => Ok(String::from("pending")),
            Some(None) => Ok(String::from("empty")),
            Some(Some(received)) => {
                let again = if received.redelivered { "!" } else { "" };
                if no_ack {
                    self.world.client(&self.on).held.pop();
                }
                let answer = format!("{}{again}", name(&received));
                self.last = Some(received);
                Ok(answer)
            }
        }
    }

    fn settle(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.world.now;
        let (multiple, requeue) = (line.has("multiple"), line.has("requeue"));
        let client = self.world.client(&self.on);
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
            self.world.client(&self.on).held.clear();
            self.world.broker.ack(now, channel, 0, true).map_err(said)?;
        }
        let broker = &mut self.world.broker;
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
        self.world.settle();
        let queue = self.world.broker.queue("/", line.word(0)).ok_or("no such queue")?;
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
        self.world.settle();
        let overview = self.world.broker.overview();
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
        self.world.settle();
        match line.command {
            "expect" => return self.expect_messages(line),
            "expect-cancelled" => {
                let cancelled = std::mem::take(&mut self.world.client(&self.on).cancelled);
                return check(cancelled == line.words, || format!("cancelled {cancelled:?}"));
            }
            "expect-closed" => {
                let closed = self.world.client(&self.on).closed.clone().unwrap_or_default();
                let wanted = line.words.join(" ");
                return check(closed.contains(&wanted), || format!("closed: {closed:?}"));
            }
            "expect-blocked" | "expect-unblocked" => {
                let blocked = std::mem::take(&mut self.world.blocked);
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
        let client = self.world.client(&self.on);
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

    fn steer(&mut self, line: &Line<'_>) -> Outcome {
        let now = self.world.now;
        let number = || line.word(0).parse::<u64>().map_err(said);
        match line.command {
            "wait" => self.world.wait(number()?),
            "crash" => self.world.crash(),
            "begin" => self.world.broker.begin_atomic(),
            "commit" => {
                self.world.broker.end_atomic();
            }
            "disk" => self.world.set_state(match line.word(0) {
                "full" => StoreState::Full { reason: String::from("no space left") },
                "failed" => StoreState::Failed { reason: String::from("input/output error") },
                _ => StoreState::Healthy,
            }),
            "prefetch" => {
                let (count, global) = (number()? as u16, line.has("global"));
                let channel = self.world.client(&self.on).channel;
                self.world.broker.set_prefetch(now, channel, count, global);
            }
            "flow" => {
                let channel = self.world.client(&self.on).channel;
                self.world.broker.set_flow(now, channel, line.word(0) == "on");
            }
            "recover" => {
                let client = self.world.client(&self.on);
                client.held.clear();
                let channel = client.channel;
                self.world.broker.recover(now, channel, true);
            }
            "cancel" => {
                let channel = self.world.client(&self.on).channel;
                if !self.world.broker.cancel(now, channel, line.word(0)) {
                    return Ok(String::from("unknown"));
                }
            }
            "close" => {
                let client = self.world.clients.remove(&self.on).ok_or("it is not open")?;
                self.world.broker.close_connection(now, client.connection);
            }
            "close-channel" => {
                let client = self.world.client(&self.on);
                let (connection, channel) = (client.connection, client.channel);
                client.held.clear();
                self.world.broker.close_channel(now, channel);
                let new = self.world.broker.open_channel(connection, 2).map_err(said)?;
                self.world.client(&self.on).channel = new;
            }
            "stop-reading" => self.world.client(&self.on).reads = false,
            "read" => {
                let client = self.world.client(&self.on);
                client.reads = true;
                let connection = client.connection;
                self.world.broker.output_drained(now, connection, usize::MAX);
            }
            "delete-vhost" => {
                self.world.broker.delete_vhost(now, line.word(0)).map_err(said)?;
            }
            "permit" => {
                let permissions = [1, 2, 3].map(|at| line.word(at).to_owned());
                let [configure, write, read] = permissions;
                let broker = &mut self.world.broker;
                let user = line.word(0);
                broker.set_permissions(now, user, "/", &configure, &write, &read).map_err(said)?;
            }
            command => return Err(format!("no such command: {command}")),
        }
        done()
    }
}

fn check(holds: bool, problem: impl FnOnce() -> String) -> Outcome {
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
