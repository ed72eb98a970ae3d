//! The connections of the publisher's process and of the consumer's. Each publisher has a queue for its consumers'
//! replies and is a consumer itself (section 3.1).

use std::sync::Arc;

use quelea_amqp_codec::method::basic;

use super::case::Case;
use super::error::SuiteError;
use super::protocol::Delivery;
use super::topology::{self, EXCHANGE};
use crate::client::Client;
use crate::control::{Phase, Records};
use crate::error::BenchError;
use crate::ledger::{Audit, Ledger, Replies};
use crate::peer::{Incoming, Peer};
use crate::publisher::{Pace, Publisher};
use crate::setup::{CHANNEL, consume, select_confirms};
use crate::subscriber::{Acknowledge, Reply, Subscriber};
use crate::template::{Message, Template, body};
use crate::uri::BrokerUri;
use crate::worker::Worker;

/// Connections of one side, dealt out over its threads.
#[derive(Debug)]
pub(crate) struct Side {
    pub workers: Vec<Worker>,
    case: Case,
    delivery: Delivery,
    frame_max: usize,
    /// Consumers that get nothing; they only have to be there.
    _strangers: Option<Client>,
}

impl Side {
    /// Connects all publishers, each with its reply queue.
    pub(crate) fn publishers(
        uri: &BrokerUri,
        case: Case,
        delivery: Delivery,
    ) -> Result<Self, BenchError> {
        let mut frame_max = usize::MAX;
        let mut peers = Vec::new();
        // In ping-pong each message is answered anyway.
        let confirm = if case.is_ping_pong() { 0 } else { delivery.confirm };
        for pair in 0..case.pairs {
            let mut client = connect(uri, &mut frame_max)?;
            if confirm > 0 {
                select_confirms(&mut client)?;
            }
            consume(&mut client, &topology::reply_queue(pair), Acknowledge::Automatic)?;
            let idle = Template::new(&message("", 0, &delivery), client.frame_max());
            let publisher = Publisher::new(vec![idle], Pace::Paused, confirm, 0);
            peers.push(Peer::new(client.into_link()?, Some(publisher), Incoming::Replies));
        }
        Ok(Self::new(peers, case, delivery, frame_max, None))
    }

    /// Connects all consumers, and those whose patterns do not match (section 3.5).
    pub(crate) fn consumers(
        uri: &BrokerUri,
        case: Case,
        delivery: Delivery,
    ) -> Result<Self, BenchError> {
        let mut frame_max = usize::MAX;
        let acknowledge = delivery.ack_every.map_or(Acknowledge::Automatic, Acknowledge::Every);
        let mut peers = Vec::new();
        for (pair, consumer) in consumers_of(&case) {
            let mut client = connect(uri, &mut frame_max)?;
            if delivery.prefetch > 0 {
                let qos = basic::Qos { prefetch_count: delivery.prefetch, ..Default::default() };
                client.call(CHANNEL, &qos.into())?;
            }
            consume(&mut client, &topology::consumer_queue(pair, consumer), acknowledge)?;
            let subscriber = Subscriber::new(CHANNEL, acknowledge);
            peers.push(Peer::new(client.into_link()?, None, Incoming::Messages(subscriber)));
        }
        let strangers = topology::strangers(&case);
        let mut client = (strangers > 0).then(|| connect(uri, &mut frame_max)).transpose()?;
        if let Some(client) = &mut client {
            for number in 0..strangers {
                consume(client, &topology::stranger_queue(number), Acknowledge::Automatic)?;
            }
        }
        Ok(Self::new(peers, case, delivery, frame_max, client))
    }

    fn new(
        peers: Vec<Peer>,
        case: Case,
        delivery: Delivery,
        frame_max: usize,
        strangers: Option<Client>,
    ) -> Self {
        let threads = delivery.threads.clamp(1, peers.len().max(1));
        let mut dealt: Vec<Vec<Peer>> = (0..threads).map(|_| Vec::new()).collect();
        for (index, peer) in peers.into_iter().enumerate() {
            dealt[index % threads].push(peer);
        }
        let workers = dealt.into_iter().map(Worker::new).collect();
        Self { workers, case, delivery, frame_max, _strangers: strangers }
    }

    /// Assigns every publisher its messages of the next size.
    pub(crate) fn begin_publishing(&mut self, size: usize, messages: u64) {
        let (case, delivery, frame_max) = (self.case, self.delivery, self.frame_max);
        let reply: Arc<[u8]> = body(if case.is_ping_pong() { size } else { 0 }).into();
        self.each(|peer, pair| {
            peer.link.expect(Some(Arc::clone(&reply)));
            let Some(publisher) = &mut peer.publisher else { return };
            let (key, digits_at) = topology::key(&case, pair as u32);
            let message = Message { exchange: EXCHANGE, ..message(&key, size, &delivery) };
            let template = Template::new(&message, frame_max);
            let template = match digits_at {
                Some(offset) => template.with_unique_key(&message, offset),
                None => template,
            };
            let (pace, replies) = match case.is_ping_pong() {
                true => (Pace::OnReply, messages),
                false => (Pace::Free, u64::from(case.fanout)),
            };
            publisher.begin_round(template, pace, messages, replies);
        });
    }

    /// Tells every consumer what to reply to, and with what.
    pub(crate) fn begin_consuming(&mut self, size: usize, messages: u64) {
        let (case, delivery, frame_max) = (self.case, self.delivery, self.frame_max);
        let places: Vec<_> = consumers_of(&case).collect();
        let expected: Arc<[u8]> = body(size).into();
        self.each(|peer, index| {
            let Incoming::Messages(subscriber) = &mut peer.incoming else { return };
            let (pair, consumer) = places[index];
            let queue = topology::reply_queue(pair);
            let answer = |size| Template::new(&message(&queue, size, &delivery), frame_max);
            subscriber.begin_round(match case.is_ping_pong() {
                true => Reply::Echo(answer(size)),
                false => Reply::After { messages, number: consumer.into(), reply: answer(0) },
            });
            peer.link.expect(Some(Arc::clone(&expected)));
        });
    }

    /// Returns when the first publisher of the round began and the last one had its answers, ns.
    pub(crate) fn span_ns(&mut self) -> (u64, u64) {
        let (mut started, mut finished) = (u64::MAX, 0);
        self.each(|peer, _| {
            if let Some(publisher) = &peer.publisher {
                started = started.min(publisher.started_ns);
                finished = finished.max(publisher.finished_ns);
            }
        });
        (started, finished)
    }

    /// Returns what each publisher sent.
    pub(crate) fn ledgers(&mut self) -> Vec<Ledger> {
        let mut ledgers = Vec::new();
        self.each(|peer, _| ledgers.extend(peer.publisher.as_ref().map(|p| p.ledger)));
        ledgers
    }

    /// Returns what each publisher got back.
    pub(crate) fn replies(&mut self) -> Vec<Replies> {
        let mut replies = Vec::new();
        self.each(|peer, _| replies.extend(peer.publisher.as_ref().map(Publisher::replies)));
        replies
    }

    /// Takes what has arrived since the round ended, which has to be nothing.
    pub(crate) fn check_no_late_replies(&mut self) -> Result<(), BenchError> {
        let mut records = Records::new(Phase::Stopped);
        for worker in &mut self.workers {
            for peer in worker.peers.iter_mut().filter(|peer| peer.publisher.is_some()) {
                peer.receive(&mut records, &worker.gauge)?;
                let Some(replies) = peer.publisher.as_ref().map(Publisher::replies) else {
                    continue;
                };
                if let Some(complaint) = replies.complaint() {
                    return Err(SuiteError::LateReplies { complaint }.into());
                }
            }
        }
        Ok(())
    }

    /// Returns what each consumer got.
    pub(crate) fn audits(&mut self) -> Vec<Audit> {
        let mut audits = Vec::new();
        self.each(|peer, _| {
            if let Incoming::Messages(subscriber) = &peer.incoming {
                audits.push(subscriber.audit);
            }
        });
        audits
    }

    /// Ends all connections in order.
    pub(crate) fn close(mut self) -> Result<(), BenchError> {
        self.workers.iter_mut().try_for_each(Worker::close)
    }

    /// All peers in the order in which they connected, with their place in it.
    fn each(&mut self, mut act: impl FnMut(&mut Peer, usize)) {
        let threads = self.workers.len();
        let peers: usize = self.workers.iter().map(|worker| worker.peers.len()).sum();
        for index in 0..peers {
            act(&mut self.workers[index % threads].peers[index / threads], index);
        }
    }
}

/// Returns the pair and the number of each consumer.
fn consumers_of(case: &Case) -> impl Iterator<Item = (u32, u32)> + use<> {
    let (pairs, fanout) = (case.pairs, case.fanout);
    (0..pairs).flat_map(move |pair| (0..fanout).map(move |consumer| (pair, consumer)))
}

fn connect(uri: &BrokerUri, frame_max: &mut usize) -> Result<Client, BenchError> {
    let mut client = Client::connect(uri)?;
    client.open_channel(CHANNEL)?;
    *frame_max = client.frame_max().min(*frame_max);
    Ok(client)
}

/// Returns a message to the default exchange.
const fn message<'a>(routing_key: &'a str, size: usize, delivery: &Delivery) -> Message<'a> {
    Message {
        channel: CHANNEL,
        exchange: "",
        routing_key,
        size,
        persistent: delivery.persistent,
        mandatory: false,
        stamped: true,
    }
}
