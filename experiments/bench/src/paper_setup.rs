//! Queues, bindings and connections of the paper's benchmarks: each publisher has a queue for its
//! consumers' replies and is a consumer itself (section 3.1).

use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::{basic, exchange, queue};

use crate::args::ExchangeType;
use crate::client::{Client, short};
use crate::error::BenchError;
use crate::peer::{Incoming, Peer};
use crate::plan::Plan;
use crate::preset::Paper;
use crate::publisher::{Pace, Publisher};
use crate::setup::{Admin, CHANNEL, consume, select_confirms};
use crate::subscriber::{Acknowledge, Reply, Subscriber};
use crate::template::{Message, Template};
use crate::uri::BrokerUri;
use crate::worker::Worker;

const EXCHANGE: &str = "quelea-bench-paper";

/// All connections of a preset, kept over its rounds.
#[derive(Debug)]
pub(crate) struct Testbed {
    /// Each carries whole groups: a publisher and its consumers.
    pub workers: Vec<Worker>,
    frame_max: usize,
    persistent: bool,
    /// Consumers that get nothing; they only have to be there.
    _strangers: Option<Client>,
}

impl Testbed {
    /// Declares and connects everything. Queues of an earlier run are replaced.
    pub(crate) fn new(
        admin: &mut Admin,
        uri: &BrokerUri,
        plan: &Plan,
        paper: &Paper,
    ) -> Result<Self, BenchError> {
        Self::delete(admin, paper)?;
        admin.call(exchange::Declare {
            exchange: ShortStr::from_static(EXCHANGE),
            kind: ShortStr::from_static(paper.exchange_type().name()),
            durable: plan.durable,
            ..Default::default()
        })?;
        let mut groups: Vec<Vec<Peer>> = Vec::new();
        for pair in 0..paper.pairs {
            groups.push(connect_group(admin, uri, plan, paper, pair)?);
        }
        let strangers = connect_strangers(admin, uri, plan, paper)?;
        let threads = plan.threads.min(groups.len());
        let mut dealt: Vec<Vec<Peer>> = (0..threads).map(|_| Vec::new()).collect();
        for (index, group) in groups.into_iter().enumerate() {
            dealt[index % threads].extend(group);
        }
        Ok(Self {
            workers: dealt.into_iter().map(Worker::new).collect(),
            frame_max: admin.client.frame_max(),
            persistent: plan.persistent,
            _strangers: strangers,
        })
    }

    /// Assigns every publisher and consumer its messages of the next size.
    pub(crate) fn begin_round(&mut self, paper: &Paper, size: usize, messages: u64) {
        let mut pair = 0;
        let (persistent, frame_max) = (self.persistent, self.frame_max);
        let template = |exchange: &str, routing_key: &str, size: usize, stamped: bool| {
            let mandatory = false;
            let channel = CHANNEL;
            let message =
                Message { channel, exchange, routing_key, size, persistent, mandatory, stamped };
            Template::new(&message, frame_max)
        };
        let threads = self.workers.len();
        for (worker, first) in self.workers.iter_mut().zip(0..) {
            // The groups were dealt out in turn: worker i has the pairs i, i + threads, …
            let mut pairs = (first..paper.pairs).step_by(threads);
            for peer in &mut worker.peers {
                if let Some(publisher) = &mut peer.publisher {
                    pair = pairs.next().unwrap_or(0);
                    let key = key(paper, pair);
                    let (pace, replies) = if paper.is_ping_pong() {
                        (Pace::OnReply, messages)
                    } else {
                        (Pace::Free, u64::from(paper.fanout))
                    };
                    publisher.begin_round(
                        template(EXCHANGE, &key, size, true),
                        pace,
                        messages,
                        replies,
                    );
                } else if let Incoming::Messages(subscriber) = &mut peer.incoming {
                    let queue = reply_queue(pair);
                    subscriber.begin_round(if paper.is_ping_pong() {
                        Reply::Echo(template("", &queue, size, true))
                    } else {
                        Reply::After(messages, template("", &queue, 0, false))
                    });
                }
            }
        }
    }

    /// When the first publisher of the round began and the last one had its answers, ns.
    pub(crate) fn span_ns(&self) -> (u64, u64) {
        let publishers = || {
            self.workers.iter().flat_map(|w| w.peers.iter()).filter_map(|p| p.publisher.as_ref())
        };
        let started = publishers().map(|p| p.started_ns).min().unwrap_or(0);
        (started, publishers().map(|p| p.finished_ns).max().unwrap_or(0))
    }

    /// Ends all connections in order.
    pub(crate) fn close(&mut self) -> Result<(), BenchError> {
        self.workers.iter_mut().try_for_each(Worker::close)
    }

    /// Removes what [`Testbed::new`] declares, as far as it is there.
    pub(crate) fn delete(admin: &mut Admin, paper: &Paper) -> Result<(), BenchError> {
        let consumers = (0..paper.pairs).flat_map(|pair| {
            let queues = (0..paper.fanout).map(move |consumer| consumer_queue(pair, consumer));
            queues.chain([reply_queue(pair)])
        });
        for name in consumers.chain((0..paper.strangers).map(stranger_queue)) {
            let queue = short(&name, "queue")?;
            admin.call(queue::Delete { queue, ..Default::default() })?;
        }
        let exchange = ShortStr::from_static(EXCHANGE);
        admin.call(exchange::Delete { exchange, ..Default::default() }).map(|_| ())
    }
}

/// A publisher with its reply queue, then its consumers with theirs.
fn connect_group(
    admin: &mut Admin,
    uri: &BrokerUri,
    plan: &Plan,
    paper: &Paper,
    pair: u32,
) -> Result<Vec<Peer>, BenchError> {
    let reply = reply_queue(pair);
    declare(admin, plan, &reply)?;
    let mut client = Client::connect(uri)?;
    client.open_channel(CHANNEL)?;
    if plan.confirm > 0 {
        select_confirms(&mut client)?;
    }
    consume(&mut client, &reply, Acknowledge::Automatic)?;
    let idle = Template::new(
        &Message {
            channel: CHANNEL,
            exchange: EXCHANGE,
            routing_key: "",
            size: 0,
            persistent: false,
            mandatory: false,
            stamped: false,
        },
        client.frame_max(),
    );
    let publisher = Publisher::new(vec![idle], Pace::Paused, plan.confirm, 0);
    let mut peers = vec![Peer::new(client.into_link()?, Some(publisher), Incoming::Replies)];
    for consumer in 0..paper.fanout {
        let queue = consumer_queue(pair, consumer);
        declare(admin, plan, &queue)?;
        admin.bind(&queue, EXCHANGE, &binding(paper, pair))?;
        let mut client = Client::connect(uri)?;
        client.open_channel(CHANNEL)?;
        if plan.prefetch > 0 {
            let qos = basic::Qos { prefetch_count: plan.prefetch, ..Default::default() };
            client.call(CHANNEL, &qos.into())?;
        }
        consume(&mut client, &queue, plan.acknowledge)?;
        let subscriber = Subscriber::new(CHANNEL, plan.acknowledge);
        peers.push(Peer::new(client.into_link()?, None, Incoming::Messages(subscriber)));
    }
    Ok(peers)
}

/// Consumers with patterns that the routing key does not match (section 3.5), all on one channel.
fn connect_strangers(
    admin: &mut Admin,
    uri: &BrokerUri,
    plan: &Plan,
    paper: &Paper,
) -> Result<Option<Client>, BenchError> {
    if paper.strangers == 0 {
        return Ok(None);
    }
    let mut client = Client::connect(uri)?;
    client.open_channel(CHANNEL)?;
    for number in 0..paper.strangers {
        let queue = stranger_queue(number);
        declare(admin, plan, &queue)?;
        admin.bind(&queue, EXCHANGE, &format!("market.*.stranger-{number}"))?;
        consume(&mut client, &queue, Acknowledge::Automatic)?;
    }
    Ok(Some(client))
}

fn declare(admin: &mut Admin, plan: &Plan, name: &str) -> Result<(), BenchError> {
    let declare = queue::Declare {
        queue: short(name, "queue")?,
        durable: plan.durable,
        arguments: plan.arguments.clone(),
        ..Default::default()
    };
    admin.call(declare).map(|_| ())
}

/// What publisher `pair` puts on its messages.
fn key(paper: &Paper, pair: u32) -> String {
    match paper.exchange_type() {
        ExchangeType::Topic => "market.quotes.match".to_owned(),
        ExchangeType::Direct | ExchangeType::Fanout => format!("pair-{pair}"),
    }
}

/// What its consumers bind with.
fn binding(paper: &Paper, pair: u32) -> String {
    match paper.exchange_type() {
        ExchangeType::Topic => "market.*.match".to_owned(),
        ExchangeType::Direct | ExchangeType::Fanout => key(paper, pair),
    }
}

fn consumer_queue(pair: u32, consumer: u32) -> String {
    format!("quelea-bench-paper-{pair}-{consumer}")
}

fn reply_queue(pair: u32) -> String {
    format!("quelea-bench-paper-reply-{pair}")
}

fn stranger_queue(number: u32) -> String {
    format!("quelea-bench-paper-stranger-{number}")
}
