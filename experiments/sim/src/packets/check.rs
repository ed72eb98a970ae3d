//! What must be true, whatever happens: known from what programs published and took, not from what the
//! state machines believe.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use quelea_elastic_core::directory;
use quelea_elastic_proto::frame::GapCause;
use quelea_elastic_proto::session::Event;
use quelea_elastic_proto::{ClientId, Time};
use quelea_testkit::Trace;

use crate::packets::participant::Participant;
use crate::packets::workload::topic;

/// What is known of one run so far.
#[derive(Debug)]
pub(super) struct Check {
    /// The first is what the run ends with.
    pub(super) wrong: Vec<String>,
    pub(super) trace: Trace,
    pub(super) log: bool,
    now_us: u64,
    producers: BTreeMap<ClientId, Published>,
    listeners: BTreeMap<ClientId, Listener>,
    stored: Stored,
    /// How often each kind of event was decided.
    pub(super) events: BTreeMap<&'static str, u64>,
    queued_bytes_max: u64,
    ring_bytes_max: u64,
    /// Deliveries that relays dropped for full rings: producers had waited for a relay and came with what they
    /// had, most often.
    dropped: u64,
    pub(super) deliveries: u64,
    /// Messages that were announced to listeners as missing.
    pub(super) missing: u64,
    /// From publishing to taking, microseconds, of each delivery.
    latencies_us: Vec<u32>,
    drains_begun_us: Vec<u64>,
    /// The longest time from the decision to drain a relay to its end, milliseconds.
    pub(super) drain_ms: u64,
}

#[derive(Debug, Default)]
struct Published {
    messages: u64,
    /// When each was.
    at_us: Vec<u64>,
    acknowledged: u64,
    /// Its process has ended: it sends nothing again.
    gone: bool,
}

#[derive(Debug)]
struct Listener {
    participant: Participant,
    prefix: &'static str,
    of: BTreeMap<ClientId, Taken>,
    /// A fault concerns it, or moves did not wait for it: it may miss what others have.
    excused: bool,
    gone: bool,
}

/// What a listener has of one producer.
#[derive(Debug, Default)]
struct Taken {
    /// All below was taken, was in a gap, or does not match. `None`: nothing has come yet.
    next: Option<u64>,
    /// What was announced to it as missing.
    gaps: Vec<(Range<u64>, GapCause)>,
}

/// What a keeper has stored of each producer.
pub(super) type Stored = BTreeMap<u128, BTreeSet<u64>>;

/// What a queue promises, as far as the checks need it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    /// What is acknowledged has been taken by all listeners.
    pub(super) delivered: bool,
    /// And is stored.
    pub(super) stored: bool,
    /// Rings may be full: messages may be dropped, and announced.
    pub(super) may_drop: bool,
}

impl Check {
    pub(super) fn new(log: bool, queued_bytes_max: u64, ring_bytes_max: u64) -> Self {
        Self {
            wrong: Vec::new(),
            trace: Trace::default(),
            log,
            now_us: 0,
            producers: BTreeMap::new(),
            listeners: BTreeMap::new(),
            stored: Stored::new(),
            events: BTreeMap::new(),
            queued_bytes_max,
            ring_bytes_max,
            dropped: 0,
            deliveries: 0,
            missing: 0,
            latencies_us: Vec::new(),
            drains_begun_us: Vec::new(),
            drain_ms: 0,
        }
    }

    /// A promise was broken.
    pub(super) fn wrong(&mut self, what: String) {
        self.say(|| format!("WRONG: {what}"));
        self.wrong.push(what);
    }

    pub(super) const fn at(&mut self, now_us: u64) {
        self.now_us = now_us;
    }

    pub(super) fn say(&self, what: impl FnOnce() -> String) {
        if self.log {
            eprintln!("{:>12.6} {}", self.now_us as f64 / 1e6, what());
        }
    }

    pub(super) fn producer_began(&mut self, id: ClientId) {
        self.producers.insert(id, Published::default());
    }

    pub(super) fn listener_began(
        &mut self,
        id: ClientId,
        participant: Participant,
        prefix: &'static str,
    ) {
        let of = BTreeMap::new();
        self.listeners
            .insert(id, Listener { participant, prefix, of, excused: false, gone: false });
    }

    pub(super) fn gone(&mut self, id: ClientId) {
        if let Some(producer) = self.producers.get_mut(&id) {
            producer.gone = true;
        }
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.gone = true;
        }
    }

    /// From now on this listener may miss messages, if it is notified which.
    pub(super) fn excuse(&mut self, id: ClientId) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.excused = true;
        }
    }

    pub(super) fn published(&mut self, id: ClientId, sequence: u64) {
        let Some(producer) = self.producers.get_mut(&id) else { return };
        if producer.messages != sequence {
            let text = format!("{:x}: message {sequence} after {}", id.0, producer.messages);
            return self.wrong(text);
        }
        producer.messages += 1;
        producer.at_us.push(self.now_us);
    }

    pub(super) fn acknowledged(&mut self, id: ClientId, below: u64) {
        let Some(producer) = self.producers.get_mut(&id) else { return };
        if below < producer.acknowledged || below > producer.messages {
            let text = format!("{:x}: acknowledged below {below}: {producer:?}", id.0);
            return self.wrong(text);
        }
        producer.acknowledged = below;
    }

    pub(super) fn stored(&mut self, id: ClientId, sequences: Range<u64>) {
        self.stored.entry(id.0).or_default().extend(sequences);
    }

    /// A relay has dropped so many deliveries more.
    pub(super) const fn dropped(&mut self, deliveries: u64) {
        self.dropped += deliveries;
    }

    pub(super) fn relay_has(&mut self, participant: Participant, bytes: u64, dropped: bool) {
        if dropped && bytes < self.ring_bytes_max / 2 {
            self.wrong(format!(
                "{participant}: it dropped messages while {bytes} bytes wait in its rings"
            ));
        }
        if bytes > self.queued_bytes_max {
            let most = self.queued_bytes_max;
            self.wrong(format!(
                "{participant}: {bytes} bytes wait in its rings, the bound is {most}"
            ));
        }
    }

    pub(super) fn event(&mut self, participant: Participant, now: Time, event: &directory::Event) {
        self.trace.number(now.as_micros());
        self.trace.bytes(event.kind.as_bytes());
        *self.events.entry(event.kind).or_default() += 1;
        self.say(|| format!("{participant} {}: {}: {}", event.kind, event.subject, event.reason));
        match event.kind {
            "drain" => self.drains_begun_us.push(self.now_us),
            "ended" => {
                if let Some(begun_us) = self.drains_begun_us.pop() {
                    self.drain_ms = self.drain_ms.max((self.now_us - begun_us) / 1_000);
                }
            }
            _ => {}
        }
        if event.kind == "lagging"
            && let Some(id) = event.subject.strip_prefix("listener ")
            && let Ok(id) = u128::from_str_radix(id, 16)
        {
            self.excuse(ClientId(id));
        }
    }

    pub(super) fn took(&mut self, id: ClientId, event: &Event) {
        let (producer, from, to, what) = match event {
            Event::Message(message) => {
                let sequence = message.sequence.0;
                let expected = format!("{:x}:{sequence}:", message.producer.0);
                if !message.body().starts_with(expected.as_bytes())
                    || message.topic() != topic(sequence).as_bytes()
                {
                    self.wrong(format!("{:x}: message {sequence} is not what was sent", id.0));
                }
                (message.producer, sequence, sequence + 1, "message")
            }
            Event::Gap(gap) => (gap.producer, gap.from.0, gap.to.0, "gap"),
        };
        self.trace.number(from);
        self.trace.number(to);
        let Some(listener) = self.listeners.get_mut(&id) else { return };
        let participant = listener.participant;
        let matches = |sequence: &u64| topic(*sequence).starts_with(listener.prefix);
        let taken = listener.of.entry(producer).or_default();
        let next = taken.next.unwrap_or(from);
        let mut wrong = None;
        if from < next || to <= from {
            wrong = Some(format!("{what} {from} to {to} came after all below {next}"));
        } else if let Some(silent) = (next..from).find(matches) {
            wrong = Some(format!("nothing was said of message {silent} before {what} {from}"));
        } else if what == "message" && !matches(&from) {
            wrong = Some(format!("message {from} does not match its prefix"));
        }
        taken.next = Some(to);
        if let Event::Gap(gap) = event {
            taken.gaps.push((from..to, gap.cause));
            self.missing += (from..to).filter(matches).count() as u64;
        } else {
            self.deliveries += 1;
            let sent_us = self.producers.get(&producer).and_then(|of| of.at_us.get(from as usize));
            let took_us = sent_us.map_or(0, |sent_us| self.now_us - sent_us);
            self.latencies_us.push(u32::try_from(took_us).unwrap_or(u32::MAX));
        }
        if self.log {
            let why = match event {
                Event::Gap(gap) => format!(", {:?}", gap.cause),
                Event::Message(_) => String::new(),
            };
            self.say(|| format!("{participant} {what} {from}..{to} of {:x}{why}", producer.0));
        }
        if let Some(wrong) = wrong {
            self.wrong(format!("{participant}: of producer {:x}, {wrong}", producer.0));
        }
    }

    /// When all is over and everything has come to rest.
    pub(super) fn end(&mut self, promise: Promise) {
        let (mut wrong, mut too_slow) = (Vec::new(), 0);
        for (id, published) in &self.producers {
            if !published.gone && published.acknowledged != published.messages {
                wrong
                    .push(format!("producer {:x} waits for acknowledgements: {published:?}", id.0));
            }
            let stored = self.stored.get(&id.0);
            let is_stored = |sequence: &u64| stored.is_some_and(|stored| stored.contains(sequence));
            if promise.stored
                && let Some(lost) = (0..published.acknowledged).find(|of| !is_stored(of))
            {
                wrong.push(format!("message {lost} of {:x} is acknowledged and not stored", id.0));
            }
            too_slow +=
                self.listeners.values().map(|listener| listener.too_slow_for(*id)).sum::<u64>();
            for listener in self.listeners.values().filter(|listener| !listener.gone) {
                wrong.extend(listener.is_owed(*id, published, promise, self.dropped > 0));
            }
        }
        if too_slow > self.dropped && !promise.may_drop {
            let dropped = self.dropped;
            wrong.push(format!("{too_slow} messages missed as too slow, {dropped} were dropped"));
        }
        wrong.into_iter().for_each(|wrong| self.wrong(wrong));
    }

    /// Returns the median, the 99th percentile and the longest of all deliveries' times,
    /// microseconds.
    pub(super) fn latency_us(&self) -> [u32; 3] {
        let mut all = self.latencies_us.clone();
        all.sort_unstable();
        let last = all.len().saturating_sub(1);
        [last / 2, last * 99 / 100, last].map(|at| all.get(at).copied().unwrap_or(0))
    }

    /// Returns how many messages all producers have published, together.
    pub(super) fn published_in_all(&self) -> u64 {
        self.producers.values().map(|producer| producer.messages).sum()
    }
}

impl Listener {
    /// Returns how many messages of a producer were announced to it as dropped for its slowness.
    fn too_slow_for(&self, id: ClientId) -> u64 {
        let gaps = self.of.get(&id).map_or(&[][..], |taken| &taken.gaps);
        let too_slow = gaps.iter().filter(|(_, cause)| *cause == GapCause::TooSlow);
        let matches = |sequence: &u64| topic(*sequence).starts_with(self.prefix);
        too_slow.map(|(gap, _)| gap.clone().filter(matches).count() as u64).sum()
    }

    /// Returns what is wrong with what it has of a producer in the end.
    fn is_owed(
        &self,
        id: ClientId,
        published: &Published,
        promise: Promise,
        rings_were_full: bool,
    ) -> Option<String> {
        let taken = self.of.get(&id);
        let next = taken.and_then(|taken| taken.next);
        // A producer whose process has ended cannot send again what a relay lost after it.
        let due = if published.gone && (self.excused || !promise.delivered) {
            0
        } else {
            published.acknowledged
        };
        let matches = |sequence: &u64| topic(*sequence).starts_with(self.prefix);
        if let Some(next) = next
            && let Some(silent) = (next..due).find(matches)
        {
            return Some(format!(
                "{}: nothing was said of message {silent} of {:x}, {due} are acknowledged",
                self.participant, id.0
            ));
        }
        let gaps = taken.map_or(&[][..], |taken| &taken.gaps);
        let for_a_ring = |cause| promise.may_drop || rings_were_full && cause == GapCause::TooSlow;
        let broken = gaps.iter().filter(|(_, cause)| !for_a_ring(*cause));
        let all = broken.flat_map(|(gap, _)| gap.clone());
        let missing = all.filter(|of| *of < published.acknowledged && matches(of)).count();
        if promise.delivered && !self.excused && missing > 0 {
            return Some(format!(
                "{}: {missing} messages of {:x} are lost, though they are acknowledged",
                self.participant, id.0
            ));
        }
        None
    }
}
