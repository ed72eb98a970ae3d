//! A receiving thread of the experiment: reads a message, processes it, deletes it, and again.

use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use quelea_sqs_client::{Client, Error};
use serde_json::Value;

use crate::clock::{SECOND_NS, now_ns};
use crate::sqs::args::SqsArgs;
use crate::sqs::call;
use crate::sqs::payload::{Tag, happens};
use crate::sqs::sender::{Trace, pause};
use crate::sqs::tracked_queue::TrackedQueue;

/// Long poll of an empty queue.
const WAIT_S: u32 = 1;
/// A queue in which nothing has moved for so long beyond the visibility timeout gives nothing more.
const QUIET_S: u64 = 5;

/// A receiving thread.
pub(crate) struct Receiver<'a> {
    args: &'a SqsArgs,
    queue: &'a TrackedQueue,
    /// Counted within the queue.
    number: u32,
    client: Client,
    inject: Box<dyn Fn(&mut Client) + 'a>,
    rng: Rng,
    trace: Trace,
}

impl<'a> Receiver<'a> {
    /// `inject` gives each client of the thread its failures.
    pub(crate) fn new(
        args: &'a SqsArgs,
        queue: &'a TrackedQueue,
        client: Client,
        (number, rng): (u32, Rng),
        inject: impl Fn(&mut Client) + 'a,
    ) -> Self {
        let trace = Trace::default();
        Self { args, queue, number, client, inject: Box::new(inject), rng, trace }
    }

    /// Receives until the queue is done.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<Trace, Error> {
        let receive = call::receive(&self.queue.url, 1, WAIT_S, None);
        (self.inject)(&mut self.client);
        while !self.queue.is_done() && !stop.load(Ordering::Relaxed) {
            let begun = now_ns();
            let answer = self.client.call("ReceiveMessage", &receive);
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
            let Some(message) = found.first() else {
                self.look_for_the_end(ended)?;
                continue;
            };
            self.trace.begin(begun);
            self.trace.response_ns.push(ended - begun);
            let tag = self.queue.note_received(self.number, &message.body, (begun, ended));
            let handle = message.receipt_handle.to_string();
            if happens(&mut self.rng, self.args.crash) {
                // What it had in hand is gone with it; a new thread has a new connection.
                self.trace.crashed += 1;
                self.client = self.client.clone();
                (self.inject)(&mut self.client);
                continue;
            }
            pause(self.args.receive_delay_s);
            if happens(&mut self.rng, self.args.forget) {
                self.trace.forgotten += 1;
                continue;
            }
            self.delete(tag, &handle)?;
        }
        Ok(self.trace)
    }

    fn delete(&mut self, tag: Option<Tag>, handle: &str) -> Result<(), Error> {
        match self.client.call("DeleteMessage", &call::delete(&self.queue.url, handle)) {
            Ok(_) => {
                self.trace.cycles += 1;
                self.trace.last_ns = now_ns();
            }
            // Somebody has received the message since, or a try whose response was lost did delete
            // it. If it is still there, the service counts it, and it will come again.
            Err(Error::Service(error)) if error.status == 400 => self.trace.refused_deletions += 1,
            Err(error) => return self.trace.fail(error),
        }
        self.queue.note_deleted(tag);
        Ok(())
    }

    /// Nothing was received: either because all is done, or because what is left is invisible.
    fn look_for_the_end(&mut self, now: u64) -> Result<(), Error> {
        let quiet_s = u64::from(self.args.visibility_timeout_s) + QUIET_S;
        let is_quiet = self.queue.quiet_ns(now) > quiet_s * SECOND_NS;
        if is_quiet || (self.queue.is_settled() && self.is_empty()?) {
            self.queue.finish();
        }
        Ok(())
    }

    /// Whether the service counts no more messages, visible or not: a second copy may be left.
    fn is_empty(&mut self) -> Result<bool, Error> {
        const COUNTS: [&str; 2] =
            ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
        let names = COUNTS.map(|name| format!("\"{name}\"")).join(",");
        let body = format!(r#"{{"QueueUrl":"{}","AttributeNames":[{names}]}}"#, self.queue.url);
        let answer = match self.client.call("GetQueueAttributes", body.as_bytes()) {
            Ok(answer) => answer,
            Err(error) => return self.trace.fail(error).map(|()| false),
        };
        let answer: Value = serde_json::from_slice(answer)
            .map_err(|source| Error::Answer { action: "GetQueueAttributes", source })?;
        // A service that does not count them leaves the end to the quiet time.
        Ok(COUNTS.iter().all(|name| answer["Attributes"][name] == "0"))
    }
}
