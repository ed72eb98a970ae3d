//! The thread that hands messages to the producers at their times.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quelea_elastic_client::{ClientId, Error, Producer, PublishError};

use super::{Shared, TOPIC, lock};
use crate::clock::now_ns;
use crate::elastic::error::ElasticError;
use crate::elastic::producer_connection::Pace;
use crate::elastic::stamp::Stamp;

/// How often it looks whether there is a new producer, at least.
const LOOK_NS: u64 = 5_000_000;
/// How soon a producer whose window is full is tried again. Its messages stay due meanwhile.
const FULL_NS: u64 = 500_000;

/// A producer, its messages so far and those to come.
#[derive(Debug)]
pub(super) struct PacedProducer {
    pub(super) number: usize,
    pub(super) id: ClientId,
    /// `None`: it has left.
    pub(super) producer: Option<Producer>,
    pub(super) pace: Pace,
    pub(super) sent: u64,
}

/// The thread; ends with the value, once [`Shared::end`] is set.
#[derive(Debug)]
pub(super) struct Pacer(Option<JoinHandle<()>>);

impl PacedProducer {
    pub(super) fn new(number: usize, producer: Producer, pace: Pace) -> Self {
        Self { number, id: producer.id(), producer: Some(producer), pace, sent: 0 }
    }

    /// Sends what is due; returns when it wants to go on.
    fn turn(&mut self, now: u64, run: u64, body: &mut [u8]) -> Result<u64, ElasticError> {
        let Some(producer) = &self.producer else { return Ok(u64::MAX) };
        while self.pace.next_ns <= now {
            let (number, sent_ns) = (self.number as u64, self.pace.next_ns);
            Stamp { run, producer: number, sequence: self.sent, sent_ns }.put(body);
            match producer.try_publish(&[TOPIC.as_bytes(), body]) {
                Ok(_) => {}
                Err(Error::Publish(PublishError::Full { .. })) => return Ok(now + FULL_NS),
                Err(source) => {
                    return Err(ElasticError::Client { who: format!("producer {number}"), source });
                }
            }
            self.sent += 1;
            self.pace.step();
        }
        Ok(self.pace.next_ns)
    }
}

impl Pacer {
    pub(super) fn start(shared: Arc<Shared>, size: usize) -> Result<Self, ElasticError> {
        let run = move || {
            let mut body = vec![0; size];
            while !shared.end.load(Ordering::Relaxed) {
                let now = now_ns();
                let mut until = now + LOOK_NS;
                for paced in lock(&shared.producers).iter_mut() {
                    match paced.turn(now, shared.run, &mut body) {
                        Ok(next) => until = until.min(next),
                        Err(error) => return shared.fail(error),
                    }
                }
                thread::sleep(Duration::from_nanos(until.saturating_sub(now_ns())));
            }
        };
        let thread = thread::Builder::new().name("bench-pacer".to_owned()).spawn(run);
        Ok(Self(Some(thread.map_err(ElasticError::Thread)?)))
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // The thread has printed its panic.
            let _ = thread.join();
        }
    }
}
