//! A listener, and what it has heard.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use quelea_elastic_client::{ClientId, Event, GapNotice, Listener, Message};

use super::{Shared, lock};
use crate::clock::now_ns;
use crate::elastic::error::ElasticError;
use crate::elastic::stamp::Stamp;
use crate::elastic::tally::Tally;
use crate::latency::Latencies;

/// Notices of gaps that are remembered of one listener; more are a run that says nothing anyway.
const GAPS_MAX: usize = 100_000;
/// What the directory says, at most so many.
const NOTICES_MAX: usize = 100;

/// What one listener has heard.
#[derive(Debug)]
pub(super) struct ListenerProbe {
    number: usize,
    pub(super) tally: Tally,
    /// Since they were taken last.
    pub(super) latencies: Latencies,
    pub(super) gaps: Vec<Gap>,
    pub(super) notices: Vec<String>,
    /// By producer: a mark, and when the first message came that was meant to leave after it.
    flows: Vec<(u64, u64)>,
}

/// Messages that do not come, as the library announced them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    pub(super) producer: ClientId,
    from: u64,
    to: u64,
}

impl Gap {
    pub(super) const fn range(&self) -> (u64, u64) {
        (self.from, self.to)
    }
}

impl ListenerProbe {
    pub(super) fn new(number: usize, producers: usize) -> Self {
        Self {
            number,
            tally: Tally::new(producers),
            latencies: Latencies::new(),
            gaps: Vec::new(),
            notices: Vec::new(),
            flows: vec![(0, 0); producers],
        }
    }

    /// Returns when a message of this producer came that was meant to leave after the mark.
    pub(super) fn first_after(&self, mark: u64, producer: usize) -> Option<u64> {
        let (of, at) = self.flows[producer];
        (of == mark).then_some(at)
    }

    fn handle_event(&mut self, event: Event, shared: &Shared) -> Result<(), ElasticError> {
        match event {
            Event::Message(message) => return self.record_message(&message, shared),
            Event::Gap(GapNotice { producer, from, to, .. }) if self.gaps.len() < GAPS_MAX => {
                self.gaps.push(Gap { producer, from: from.0, to: to.0 });
            }
            Event::Notice { text, .. } if self.notices.len() < NOTICES_MAX => {
                self.notices.push(text);
            }
            Event::Gap(_) | Event::Notice { .. } => {}
        }
        Ok(())
    }

    fn record_message(&mut self, message: &Message, shared: &Shared) -> Result<(), ElasticError> {
        let now = now_ns();
        let body = message.body();
        // The library's number is the place in the order too: gaps are announced by it.
        let stamp = Stamp::read(body)
            .filter(|it| it.run == shared.run && it.sequence == message.sequence.0)
            .filter(|it| self.tally.take(it.producer, it.sequence));
        let foreign = ElasticError::Foreign { listener: self.number, bytes: body.len() };
        let stamp = stamp.ok_or(foreign)?;
        self.latencies.record_since(stamp.sent_ns, now);
        let mark = shared.mark_ns.load(Ordering::Relaxed);
        let flow = &mut self.flows[stamp.producer as usize];
        if mark > flow.0 && stamp.sent_ns >= mark {
            *flow = (mark, now);
        }
        Ok(())
    }
}

/// Hears until the listener ends.
pub(super) async fn listen(
    mut listener: Listener,
    probe: Arc<Mutex<ListenerProbe>>,
    shared: Arc<Shared>,
) {
    let number = lock(&probe).number;
    let fail = |source| {
        let who = format!("listener {number}");
        shared.fail(ElasticError::Client { who, source });
    };
    loop {
        let mut event = match listener.next().await {
            Ok(event) => Some(event),
            Err(error) => return fail(error),
        };
        let mut probe = lock(&probe);
        while let Some(one) = event {
            if let Err(error) = probe.handle_event(one, &shared) {
                return shared.fail(error);
            }
            event = match listener.try_next() {
                Ok(event) => event,
                Err(error) => return fail(error),
            };
        }
    }
}
