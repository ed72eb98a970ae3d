//! Clients: some send; some receive, and delete what they received, change its visibility, or forget it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quelea_sqs_protocol::{
    Delivery, Fault, NewMessage, QueueFacts, ReceiptOutcome, Receive, Received,
};
use tokio::time::{Instant, sleep};

use super::history::Reception;
use super::standard_simulation::StandardSimulation;

/// Returns how long a client waits for an answer.
fn patience() -> Duration {
    ms(if fastrand::u32(..4) == 0 { 6_000..20_000 } else { 3_500..6_000 })
}

/// For how long what is received at the end is hidden.
const DRAINED_MS: u64 = 20_000;

fn ms(range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(fastrand::u64(range))
}

impl StandardSimulation {
    pub(super) async fn produce(self: Arc<Self>, producer: usize) {
        let mut number = 0;
        while self.began.elapsed() < self.common.chaos.active {
            let count = fastrand::usize(1..=3);
            let messages = (number..number + count).map(|number| NewMessage {
                body: format!("{producer}-{number}").into(),
                sender_id: "sender".into(),
                group_id: fastrand::bool().then(|| format!("group-{}", fastrand::u32(..3))),
                delay_ms: (fastrand::u32(..10) == 0).then(|| fastrand::u64(..10_000)),
                ..NewMessage::default()
            });
            let messages: Vec<NewMessage> = messages.collect();
            let bodies: Vec<Bytes> = messages.iter().map(|message| message.body.clone()).collect();
            let began = Instant::now();
            number += count;
            let front_end = self.any_front_end();
            let sent = front_end.standard.send(&self.queue, messages);
            match front_end.call(patience(), sent).await {
                Some(Ok(outcomes)) => {
                    let mut history = self.history();
                    for (outcome, body) in outcomes.into_iter().zip(bodies) {
                        match outcome {
                            Ok(sent) => history.confirmed(sent.message_id, body, began),
                            Err(fault) => history.refused(Some(&fault)),
                        }
                    }
                }
                Some(Err(fault)) => self.history().refused(Some(&fault)),
                None => self.history().refused(None),
            }
            sleep(ms(50..800)).await;
        }
    }

    pub(super) async fn consume(self: Arc<Self>) {
        while self.began.elapsed() < self.common.chaos.active {
            let receive = Receive {
                max: fastrand::usize(1..=10),
                visibility_timeout_ms: fastrand::u64(1_000..15_000),
                wait_ms: fastrand::u64(..3_000),
                attempt_id: None,
            };
            let received = self.receive(&self.queue, receive).await;
            if received.is_empty() {
                sleep(ms(1..100)).await;
                continue;
            }
            sleep(ms(1..2_000)).await;
            let forgotten = if self.common.chaos.moves { 1..=6 } else { 1..=2 };
            match fastrand::u32(..10) {
                0 => self.change_visibility(received).await,
                one if forgotten.contains(&one) => {}
                _ => self.delete(&self.queue, received).await,
            }
        }
    }

    /// Receives and deletes what is there.
    pub(super) async fn drain(self: Arc<Self>) {
        for queue in [&self.queue, &self.dead_letters] {
            let receive = Receive {
                max: 10,
                visibility_timeout_ms: DRAINED_MS,
                wait_ms: 1_000,
                attempt_id: None,
            };
            let received = self.receive(queue, receive).await;
            if !received.is_empty() {
                self.delete(queue, received).await;
            }
        }
    }

    async fn receive(&self, queue: &Arc<QueueFacts>, receive: Receive) -> Vec<Received> {
        let (front_end, began) = (self.any_front_end(), Instant::now());
        let hidden = Duration::from_millis(receive.visibility_timeout_ms);
        let received = front_end.standard.receive(queue, receive);
        let Some(received) = self.answer(front_end.call(patience(), received).await) else {
            return Vec::new();
        };
        let at = Instant::now();
        let mut history = self.history();
        for message in &received {
            // It was hidden from some time in between on.
            let until = began + hidden;
            let is_dead_letter = message.dead_letter_source.is_some();
            let reception = Reception { began, at, until, is_dead_letter };
            history.received(message.message_id.clone(), &message.body, reception);
        }
        received
    }

    /// Returns what a call has answered, if it did; else notes why not.
    fn answer<T>(&self, answered: Option<Result<T, Fault>>) -> Option<T> {
        match answered {
            Some(Ok(answer)) => return Some(answer),
            Some(Err(fault)) => self.history().refused(Some(&fault)),
            None => self.history().refused(None),
        }
        None
    }

    async fn delete(&self, queue: &Arc<QueueFacts>, received: Vec<Received>) {
        let deliveries: Vec<Delivery> = received.iter().map(|one| one.delivery.clone()).collect();
        received.iter().for_each(|one| self.history().deleting(one.message_id.clone()));
        let front_end = self.any_front_end();
        let deleted = front_end.standard.delete(queue, deliveries);
        let Some(outcomes) = self.answer(front_end.call(patience(), deleted).await) else { return };
        let mut history = self.history();
        for (message, outcome) in received.iter().zip(outcomes) {
            assert_eq!(outcome, ReceiptOutcome::Done, "a receipt of this queue");
            history.deleted(&message.message_id, message.dead_letter_source.is_some());
        }
    }

    async fn change_visibility(&self, received: Vec<Received>) {
        let timeout_ms = if fastrand::bool() { 0 } else { fastrand::u64(1_000..15_000) };
        let changes = received.iter().map(|one| (one.delivery.clone(), timeout_ms)).collect();
        let front_end = self.any_front_end();
        // From when it is asked for on.
        received.iter().for_each(|one| self.history().released(&one.message_id));
        let changed = front_end.standard.change_visibility(&self.queue, changes);
        self.answer(front_end.call(patience(), changed).await);
    }
}
