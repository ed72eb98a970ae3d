//! The way of a message: checked, matched, and put into the rings of its listeners. A run of
//! messages is one slice of what was read, however many they are and whoever gets it.

use bytes::{Buf as _, Bytes};
use quelea_elastic_proto::error::{Fault, FrameError, FrameName};
use quelea_elastic_proto::frame::{ErrorCode, WireError};
use quelea_elastic_proto::limits::{DATA_HEADER_BYTES, SEQUENCE_MAX};
use quelea_elastic_proto::parts::PartsError;
use quelea_elastic_proto::wire::{DataHeader, FrameHeader, Kind};
use quelea_elastic_proto::{MessageSeq, Slot, parts};

use crate::relay::ledger::Holds;
use crate::relay::limits::OVERDRAFT_BYTES;
use crate::relay::producer::State;
use crate::relay::ring::Run;
use crate::relay::{Relay, client};

/// A filtered run that is smaller than the memory it keeps alive by more than this factor is copied when
/// it has to wait: memory in use stays within this multiple of what the rings count.
const SPARSE_FACTOR: usize = 8;
/// What a connection reads into at once. A run is a slice of that, however little a read has brought, and others
/// of it have gone to other listeners.
const READ_BUFFER_BYTES: usize = 64 << 10;

impl Relay {
    /// Takes the DATA frames of one slot from the front of `frames`, and gives them to their listeners.
    pub(crate) fn messages(
        &mut self,
        client: u32,
        frames: &mut Bytes,
        buffer_bytes: usize,
    ) -> Result<(), WireError> {
        let Some(header) = DataHeader::of_frame(frames) else {
            return Err(WireError::fatal(
                ErrorCode::Malformed,
                "length",
                "a DATA frame is too short",
            ));
        };
        let index = self
            .slot_of(client, header.slot)
            .map_err(|error| WireError::fatal(error.code, "slot", error.text))?;
        let producer = &self.producers[index as usize];
        if producer.state != State::Started {
            let text = format!("DATA in slot {}, which is {:?}", header.slot.0, producer.state);
            return Err(WireError::fatal(ErrorCode::Order, "slot", text));
        }
        let first = producer.next;
        self.check_credit(client, index)?;
        let mut run = RunExtent { slot: header.slot, next: first, bytes: 0 };
        let outcome = self.check_run(frames, &mut run);
        let messages = run.next.0 - first.0;
        if messages > 0 {
            let bytes = frames.split_to(run.bytes);
            self.fan_out(index, bytes, first, messages as u32, buffer_bytes);
            self.check_credit(client, index)?;
        }
        if outcome.is_err() {
            frames.advance(frames.len());
        }
        outcome
    }

    /// Refuses what is beyond a producer's credit: only a message that begins within it may end beyond. An
    /// edge has none: it asks before it gives messages ([`Relay::edge_may_publish`]).
    fn check_credit(&self, client: u32, index: u32) -> Result<(), WireError> {
        let producer = &self.producers[index as usize];
        let (sent, granted) = (producer.bytes, producer.granted_bytes);
        if self.clients[client as usize].kind == client::Kind::Edge
            || (granted > 0 && sent <= granted + OVERDRAFT_BYTES)
        {
            return Ok(());
        }
        let slot = producer.slot.0;
        let text = format!("DATA in slot {slot}: {sent} bytes were sent, and {granted} granted");
        Err(WireError::fatal(ErrorCode::Limit, "credit", text))
    }

    /// Follows the messages to the end of the run, and notes who gets which.
    fn check_run(&mut self, frames: &Bytes, run: &mut RunExtent) -> Result<(), WireError> {
        let filtered = !self.prefixes.is_empty();
        while run.bytes < frames.len() {
            let rest = &frames[run.bytes..];
            let header = match FrameHeader::read(rest) {
                Ok(Some(header)) if header.kind == Kind::Data => header,
                _ => return Ok(()),
            };
            let frame = rest.get(..header.frame_bytes());
            let Some((frame, data)) =
                frame.and_then(|frame| Some((frame, DataHeader::of_frame(frame)?)))
            else {
                return Err(WireError::fatal(
                    ErrorCode::Malformed,
                    "length",
                    "a DATA frame is too short",
                ));
            };
            if data.slot != run.slot {
                return Ok(());
            }
            if data.sequence != run.next {
                let text = format!(
                    "message {} came in slot {}, and {} is the next one",
                    data.sequence.0, run.slot.0, run.next.0
                );
                return Err(WireError::fatal(ErrorCode::Order, "sequence", text));
            }
            if data.sequence.0 >= SEQUENCE_MAX {
                // Listeners' decoders would refuse the number after it, and drop their connections.
                let text = format!(
                    "message {} came in slot {}: its number must be below {SEQUENCE_MAX}",
                    data.sequence.0, run.slot.0
                );
                return Err(WireError::fatal(ErrorCode::Limit, "sequence", text));
            }
            let message = &frame[DATA_HEADER_BYTES..];
            if let Err(error) = parts::check(message) {
                return Err(faulty_parts(error).into());
            }
            let end = run.bytes + frame.len();
            if filtered && let Ok(topic) = parts::first(message) {
                self.note_matches(topic, run.next, run.bytes, end);
            }
            run.bytes = end;
            run.next.0 += 1;
        }
        Ok(())
    }

    /// Notes the listeners of one message that have prefixes of its topic.
    fn note_matches(&mut self, topic: &[u8], sequence: MessageSeq, begin: usize, end: usize) {
        let Self { prefixes, clients, filtered_runs, .. } = self;
        prefixes.each_match(topic, |index| {
            let Some(listener) = &mut clients[index as usize].listener else { return };
            if listener.everything > 0 {
                return;
            }
            if let Some(filtered_run) =
                listener.filtered_run.and_then(|at| filtered_runs.get_mut(at))
            {
                if filtered_run.next() == sequence {
                    filtered_run.end = end;
                    filtered_run.messages += 1;
                    return;
                }
                // A listener may have several prefixes of one topic.
                if filtered_run.next().0 == sequence.0 + 1 {
                    return;
                }
            }
            listener.filtered_run = Some(filtered_runs.len());
            filtered_runs.push(FilteredRun {
                listener: index,
                begin,
                end,
                first: sequence,
                messages: 1,
            });
        });
    }

    fn fan_out(
        &mut self,
        index: u32,
        bytes: Bytes,
        first: MessageSeq,
        messages: u32,
        buffer_bytes: usize,
    ) {
        let length = bytes.len();
        self.counters.messages_in += u64::from(messages);
        self.counters.bytes_in += length as u64;
        let producer = &mut self.producers[index as usize];
        producer.next.0 += u64::from(messages);
        producer.messages += u64::from(messages);
        producer.bytes += length as u64;
        let entry = producer.ledger.push(producer.next, length);
        let whole = Run {
            bytes,
            producer: index,
            slot: producer.slot,
            first,
            messages,
            entry,
            holds: Holds::NONE,
            sparse: length * SPARSE_FACTOR < buffer_bytes,
            at: self.now,
        };
        self.enqueue_keep(index, &whole);
        for at in 0..self.everything.len() {
            self.offer(self.everything[at], whole.clone());
        }
        if !self.filtered_runs.is_empty() {
            self.offer_filtered(&whole);
        }
        self.producers[index as usize].ledger.release(entry, Holds::BOTH);
        self.unsettle(index);
    }

    fn offer_filtered(&mut self, whole: &Run) {
        let mut filtered_runs = std::mem::take(&mut self.filtered_runs);
        for filtered_run in filtered_runs.drain(..) {
            if let Some(listener) = &mut self.clients[filtered_run.listener as usize].listener {
                listener.filtered_run = None;
            }
            let bytes = whole.bytes.slice(filtered_run.begin..filtered_run.end);
            let kept_alive = whole.bytes.len().max(READ_BUFFER_BYTES);
            let sparse = whole.sparse || bytes.len() * SPARSE_FACTOR < kept_alive;
            let FilteredRun { first, messages, .. } = filtered_run;
            self.offer(
                filtered_run.listener,
                Run { bytes, first, messages, sparse, ..whole.clone() },
            );
        }
        self.filtered_runs = filtered_runs;
    }
}

fn faulty_parts(error: PartsError) -> FrameError {
    FrameError { frame: FrameName::Known(Kind::Data), field: "parts", fault: Fault::Message(error) }
}

/// Messages without a hole that one filtered listener gets of a run, and where they are in it.
#[derive(Debug)]
pub(crate) struct FilteredRun {
    listener: u32,
    begin: usize,
    end: usize,
    first: MessageSeq,
    messages: u32,
}

impl FilteredRun {
    const fn next(&self) -> MessageSeq {
        MessageSeq(self.first.0 + self.messages as u64)
    }
}

/// How far a run goes.
struct RunExtent {
    slot: Slot,
    next: MessageSeq,
    bytes: usize,
}
