//! From the queue to all SUBs of an entry: one native listener that wants what any of them wants. The
//! relay core behind them sorts out who gets what.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use quelea_elastic_client::{Client, Error, Event, Listener};
use quelea_elastic_proto::limits::PREFIXES_MAX;
use tokio::time::sleep;

use super::counters::EntryCounters;
use super::lost_notice::LostNotice;
use crate::edge::EdgePort;
use crate::node::SharedNode;
use crate::zmtp::client_id;

/// Messages that are handed on at once.
const BATCH_MAX: usize = 1_024;
/// Bytes of these, but for the last message: in an empty ring of a SUB they have room whatever its limit, and until
/// they are handed on nothing asks whether the SUBs take more.
const BATCH_BYTES_MAX: usize = 64 << 10;
/// After the directory has refused us for good: somebody has to change something.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);

/// Feeds the node for as long as it runs.
pub(super) async fn run(
    node: SharedNode,
    client: Client,
    queue: String,
    counters: Arc<EntryCounters>,
) {
    let mut lost = LostNotice::default();
    loop {
        let error = match Feed::open(&node, &client, &queue, &counters).await {
            Ok(mut feed) => feed.run(&mut lost).await,
            Err(error) => error,
        };
        tracing::error!(queue, %error, "a ZMTP entry's listeners get nothing; trying again");
        sleep(REFUSED_PAUSE).await;
    }
}

struct Feed {
    node: SharedNode,
    queue: String,
    port: EdgePort,
    listener: Listener,
    wanted: Subscriptions,
    batch: Vec<Bytes>,
    counters: Arc<EntryCounters>,
}

impl Feed {
    async fn open(
        node: &SharedNode,
        client: &Client,
        queue: &str,
        counters: &Arc<EntryCounters>,
    ) -> Result<Self, Error> {
        let listener = client.listener(queue, [[0; 0]; 0]).await?;
        let port = EdgePort::open(node, queue).map_err(Error::Refused)?;
        port.produce(client_id());
        port.follow_subscriptions();
        let counters = Arc::clone(counters);
        let (wanted, batch) = (Subscriptions::default(), Vec::new());
        let (node, queue) = (node.clone(), queue.to_owned());
        Ok(Self { node, queue, port, listener, wanted, batch, counters })
    }

    /// Feeds the SUBs until the queue cannot be listened to any more. Returns why.
    async fn run(&mut self, lost: &mut LostNotice) -> Error {
        loop {
            let port = &self.port;
            let has_room = poll_fn(|cx| Poll::Ready(port.poll_may_publish(cx).is_ready())).await;
            tokio::select! {
                biased;
                (prefix, on) = poll_fn(|cx| port.poll_subscription(cx)) => {
                    let change = if on { self.wanted.add(prefix) } else { self.wanted.remove(prefix) };
                    if let Err(error) = self.subscribe(change) {
                        return error;
                    }
                }
                () = poll_fn(|cx| port.poll_may_publish(cx)), if !has_room => {}
                event = self.listener.next(), if has_room => match event {
                    Ok(event) => {
                        if let Some(error) = self.hand_on(event, lost) {
                            return error;
                        }
                        // The relay's turn, and the SUBs' tasks.
                        tokio::task::yield_now().await;
                    }
                    Err(error) => return error,
                },
            }
        }
    }

    fn subscribe(&self, change: Option<(Bytes, bool)>) -> Result<(), Error> {
        match change {
            Some((prefix, true)) => self.listener.subscribe(prefix),
            Some((prefix, false)) => self.listener.unsubscribe(prefix),
            None => Ok(()),
        }
    }

    /// Hands on this event, and what else is there. Returns the error behind them, if there is one.
    fn hand_on(&mut self, first: Event, lost: &mut LostNotice) -> Option<Error> {
        let (mut next, mut bytes) = (Ok(Some(first)), 0);
        let error = loop {
            match next {
                Ok(Some(Event::Message(message))) => {
                    bytes += message.encoded.len();
                    self.batch.push(message.encoded);
                }
                Ok(Some(Event::Gap(gap))) => {
                    let messages = gap.messages.unwrap_or(gap.to.0 - gap.from.0);
                    self.count_lost(messages, lost);
                }
                // The directory reports it to operators by itself.
                Ok(Some(Event::Notice { .. })) => {}
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
            if self.batch.len() >= BATCH_MAX || bytes >= BATCH_BYTES_MAX {
                break None;
            }
            next = self.listener.try_next();
        };
        self.port.publish(self.batch.iter().map(|message| &message[..]));
        self.batch.clear();
        error
    }

    fn count_lost(&self, messages: u64, lost: &mut LostNotice) {
        EntryCounters::add(&self.counters.lost_out, messages);
        let now = self.node.with(|node| node.clock.now());
        if let Some(messages) = lost.lost(messages, now) {
            let queue = &self.queue;
            tracing::warn!(
                queue,
                messages,
                "a ZMTP entry is too slow, or lost a relay: messages are lost"
            );
        }
    }
}

/// What SUBs want, and what of it is announced to the queue's relays: each prefix, or everything when there are
/// more than a listener may have.
#[derive(Debug, Default)]
struct Subscriptions {
    announced: BTreeSet<Bytes>,
    beyond: BTreeSet<Bytes>,
}

impl Subscriptions {
    /// Adds one prefix. Returns the change to announce to the relays, if there is any.
    fn add(&mut self, prefix: Bytes) -> Option<(Bytes, bool)> {
        // One place is for the empty prefix.
        if self.announced.len() + 1 < PREFIXES_MAX {
            return self.announced.insert(prefix.clone()).then_some((prefix, true));
        }
        let first = self.beyond.is_empty();
        self.beyond.insert(prefix);
        first.then(|| (Bytes::new(), true))
    }

    /// Removes one prefix. Returns the change to announce to the relays, if there is any.
    fn remove(&mut self, prefix: Bytes) -> Option<(Bytes, bool)> {
        if self.announced.remove(&prefix) {
            return Some((prefix, false));
        }
        let last = self.beyond.remove(&prefix) && self.beyond.is_empty();
        last.then(|| (Bytes::new(), false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(number: usize) -> Bytes {
        Bytes::from(format!("{number}."))
    }

    #[test]
    fn more_prefixes_than_a_listener_may_have_become_everything() {
        let mut wanted = Subscriptions::default();
        for number in 0..PREFIXES_MAX - 1 {
            assert_eq!(wanted.add(prefix(number)), Some((prefix(number), true)));
        }
        assert_eq!(wanted.add(prefix(PREFIXES_MAX)), Some((Bytes::new(), true)));
        assert_eq!(wanted.add(prefix(PREFIXES_MAX + 1)), None);
        assert_eq!(wanted.remove(prefix(PREFIXES_MAX)), None);
        assert_eq!(wanted.remove(prefix(3)), Some((prefix(3), false)));
        assert_eq!(wanted.remove(prefix(PREFIXES_MAX + 1)), Some((Bytes::new(), false)));
        assert_eq!(wanted.remove(prefix(3)), None);
        assert_eq!(wanted.add(prefix(3)), Some((prefix(3), true)));
    }
}
