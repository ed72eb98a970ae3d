//! A receiving thread of the experiment: reads a message, processes it, deletes it, and again.

use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use quelea_sqs_client::Error;
use serde_json::Value;

use crate::clock::{SECOND_NS, now_ns};
use crate::sqs::args::SqsArgs;
use crate::sqs::call;
use crate::sqs::front_ends::FrontEnds;
use crate::sqs::payload::{Tag, happens};
use crate::sqs::sender::{Trace, pause};
use crate::sqs::tracked_queue::TrackedQueue;

/// Long poll of an empty queue.
const WAIT_S: u32 = 1;
/// A queue in which nothing has moved for so long beyond the visibility timeout is asked whether it has anything left.
const QUIET_S: u64 = 5;
/// It has to give nothing so often then, to calls that began when it was quiet: a service may be slow.
const EMPTY_ANSWERS: u32 = 3;
/// A queue that still counts messages is given up when nothing has moved for so long.
const GIVEN_UP_S: u64 = 300;

/// A receiving thread.
pub(crate) struct Receiver<'a> {
    args: &'a SqsArgs,
    queue: &'a TrackedQueue,
    /// Counted within the queue.
    number: u32,
    front_ends: FrontEnds,
    inject: Box<dyn Fn(&mut FrontEnds) + 'a>,
    rng: Rng,
    trace: Trace,
}

/// A message in the thread's hands.
struct Held {
    tag: Option<Tag>,
    handle: String,
}

impl<'a> Receiver<'a> {
    /// Returns a receiving thread. `inject` makes each new connection of the thread fail as asked
    /// for.
    pub(crate) fn new(
        args: &'a SqsArgs,
        queue: &'a TrackedQueue,
        front_ends: FrontEnds,
        (number, rng): (u32, Rng),
        inject: impl Fn(&mut FrontEnds) + 'a,
    ) -> Self {
        let trace = Trace::default();
        Self { args, queue, number, front_ends, inject: Box::new(inject), rng, trace }
    }

    /// Receives until the queue is done.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<Trace, Error> {
        let max = if self.args.batch { call::BATCH } else { 1 };
        let receive = call::receive(&self.queue.url, max, WAIT_S, None);
        (self.inject)(&mut self.front_ends);
        while !self.queue.is_done() && !stop.load(Ordering::Relaxed) {
            let begun = now_ns();
            let answer = self.front_ends.call_waiting("ReceiveMessage", &receive, WAIT_S);
            let ended = now_ns();
            let found = match answer {
                Ok(answer) => call::messages(answer)
                    .map_err(|source| Error::Answer { action: "ReceiveMessage", source })?,
                Err(error) => {
                    self.trace.fail(error)?;
                    self.look_for_the_end(ended)?;
                    continue;
                }
            };
            let held: Vec<Held> = found
                .iter()
                .map(|message| Held {
                    tag: self.queue.note_received(self.number, &message.body, (begun, ended)),
                    handle: message.receipt_handle.to_string(),
                })
                .collect();
            if held.is_empty() {
                if self.queue.quiet_ns(begun) > self.quiet_s() * SECOND_NS {
                    self.queue.note_empty_answer();
                }
                self.look_for_the_end(ended)?;
                continue;
            }
            self.trace.begin(begun);
            self.trace.response_ns.push(ended - begun);
            self.process(held)?;
        }
        Ok(self.trace)
    }

    fn process(&mut self, mut held: Vec<Held>) -> Result<(), Error> {
        if happens(&mut self.rng, self.args.crash) {
            // What it had in hand is gone with it; a new thread has new connections.
            self.trace.crashed += 1;
            self.trace.dropped += held.len() as u64;
            self.front_ends.reconnect();
            (self.inject)(&mut self.front_ends);
            return Ok(());
        }
        pause(self.args.receive_delay_s);
        let (rng, forget) = (&mut self.rng, self.args.forget);
        let before = held.len();
        held.retain(|_| !happens(rng, forget));
        self.trace.forgotten += (before - held.len()) as u64;
        match held.as_slice() {
            [] => Ok(()),
            [one] if !self.args.batch => {
                let body = call::delete(&self.queue.url, &one.handle);
                self.delete("DeleteMessage", &body, &held)
            }
            several => {
                let handles: Vec<String> = several.iter().map(|held| held.handle.clone()).collect();
                let body = call::delete_batch(&self.queue.url, &handles);
                self.delete("DeleteMessageBatch", &body, &held)
            }
        }
    }

    fn delete(&mut self, action: &'static str, body: &[u8], held: &[Held]) -> Result<(), Error> {
        let refused = match self.front_ends.call(action, body) {
            Ok(answer) if self.args.batch => call::refused(answer) as u64,
            Ok(_) => 0,
            // Somebody has received the message since, or a try whose response was lost did delete
            // it. If it is still there, the service counts it, and it will come again.
            Err(Error::Service(error)) if error.status == 400 => held.len() as u64,
            Err(error) => return self.trace.fail(error),
        };
        self.trace.refused_deletions += refused;
        self.trace.messages += held.len() as u64 - refused;
        self.trace.last_ns = now_ns();
        held.iter().for_each(|one| self.queue.note_deleted(one.tag));
        Ok(())
    }

    fn quiet_s(&self) -> u64 {
        u64::from(self.args.visibility_timeout_s) + QUIET_S
    }

    /// Looks whether the queue is done, when nothing was received: either because all is done, or
    /// because what is left is invisible, or because the service is slow. A message counts as lost
    /// only when the service says that it has none.
    fn look_for_the_end(&mut self, now: u64) -> Result<(), Error> {
        let is_quiet = self.queue.empty_answers() >= EMPTY_ANSWERS;
        let is_over = if self.queue.quiet_ns(now) > GIVEN_UP_S * SECOND_NS {
            true
        } else if self.queue.is_settled() {
            self.is_empty()?.unwrap_or(is_quiet)
        } else {
            is_quiet && self.is_empty()?.unwrap_or(true)
        };
        if is_over {
            self.queue.finish();
        }
        Ok(())
    }

    /// Asks whether the service counts no more messages, visible or not: a second copy may be left.
    /// Returns `None` if it does not count.
    fn is_empty(&mut self) -> Result<Option<bool>, Error> {
        const COUNTS: [&str; 2] =
            ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
        let names = COUNTS.map(|name| format!("\"{name}\"")).join(",");
        let body = format!(r#"{{"QueueUrl":"{}","AttributeNames":[{names}]}}"#, self.queue.url);
        let answer = match self.front_ends.call("GetQueueAttributes", body.as_bytes()) {
            Ok(answer) => answer,
            // Who does not answer has not said that there are none.
            Err(error) => return self.trace.fail(error).map(|()| Some(false)),
        };
        let answer: Value = serde_json::from_slice(answer)
            .map_err(|source| Error::Answer { action: "GetQueueAttributes", source })?;
        let counts = COUNTS.map(|name| answer["Attributes"][name].as_str().map(|it| it == "0"));
        Ok(counts.into_iter().try_fold(true, |all, one| Some(all && one?)))
    }
}
