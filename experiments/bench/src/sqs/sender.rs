//! A sending thread of the experiment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use quelea_sqs_client::Error;

use crate::clock::now_ns;
use crate::sqs::args::SqsArgs;
use crate::sqs::call;
use crate::sqs::front_ends::FrontEnds;
use crate::sqs::payload::{self, Tag};
use crate::sqs::tracked_queue::TrackedQueue;

/// How often the entries that a batch's answer refused are sent again.
const REFUSED_TRIES: u32 = 20;

/// What a thread of the experiment saw.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// From the moment an operation is invoked to its response, tries that failed included.
    pub response_ns: Vec<u64>,
    pub first_ns: Option<u64>,
    pub last_ns: u64,
    /// Messages sent, or received and deleted.
    pub messages: u64,
    /// Operations given up.
    pub failures: u64,
    pub first_failure: Option<String>,
    /// Senders: messages whose sending was done again, since the response was lost on purpose.
    pub sent_again: u64,
    /// Receivers: messages processed and not deleted.
    pub forgotten: u64,
    /// Receivers: how often the thread quit.
    pub crashed: u64,
    /// Receivers: messages that were in its hands then.
    pub dropped: u64,
    /// Receivers: deletions that the service refused, since the message was not in their hands.
    pub refused_deletions: u64,
}

impl Trace {
    pub(crate) fn begin(&mut self, now: u64) {
        self.first_ns.get_or_insert(now);
    }

    /// Counts an operation that failed in all its tries. One that the service refuses for good ends
    /// the run.
    pub(crate) fn fail(&mut self, error: Error) -> Result<(), Error> {
        if !error.is_transient() {
            return Err(error);
        }
        self.failures += 1;
        self.first_failure.get_or_insert_with(|| error.to_string());
        Ok(())
    }
}

/// A sending thread.
pub(crate) struct Sender<'a> {
    pub args: &'a SqsArgs,
    pub queue: &'a TrackedQueue,
    /// Counted within the queue.
    pub number: u32,
    pub front_ends: FrontEnds,
    /// Responses that its connections lost on purpose.
    pub lost_responses: &'a AtomicU64,
    pub rng: Rng,
}

impl Sender<'_> {
    /// Sends the thread's messages; the generator makes their bodies.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<Trace, Error> {
        let mut trace = Trace::default();
        let at_once = if self.args.batch { call::BATCH as u32 } else { 1 };
        let mut of_sender = 0;
        while of_sender < self.args.messages && !stop.load(Ordering::Relaxed) {
            let until = self.args.messages.min(of_sender + at_once);
            let tags: Vec<Tag> =
                (of_sender..until).map(|place| self.queue.tag(self.number, place)).collect();
            let begun = now_ns();
            trace.begin(begun);
            let sent = if self.args.batch {
                self.send_batch(tags, &mut trace)?
            } else {
                self.send_one(tags[0], &mut trace)?
            };
            if sent {
                trace.last_ns = now_ns();
                trace.response_ns.push(trace.last_ns - begun);
            }
            of_sender = until;
            pause(self.args.send_delay_s);
        }
        Ok(trace)
    }

    fn send_one(&mut self, tag: Tag, trace: &mut Trace) -> Result<bool, Error> {
        let text = payload::make(tag, self.args.size, &mut self.rng);
        let body = call::send_with(&self.queue.url, &text, &self.members(tag));
        let lost_before = self.lost_responses.load(Ordering::Relaxed);
        match self.front_ends.call("SendMessage", &body) {
            Ok(answer) => {
                let id = call::message_id(answer);
                self.queue.note_sent(tag, id, now_ns());
                trace.messages += 1;
                trace.sent_again += self.doubled_since(lost_before);
                Ok(true)
            }
            Err(error) => trace.fail(error).map(|()| false),
        }
    }

    /// Returns how often a sending was repeated, since its response was lost, and so made a second
    /// message. A FIFO queue knows it again.
    fn doubled_since(&self, lost_before: u64) -> u64 {
        let lost = self.lost_responses.load(Ordering::Relaxed) - lost_before;
        if self.args.fifo { 0 } else { lost }
    }

    fn entry(&mut self, tag: Tag) -> (String, String) {
        (payload::make(tag, self.args.size, &mut self.rng), self.members(tag))
    }

    /// Returns what a message has beside its body.
    fn members(&self, tag: Tag) -> String {
        if self.args.fifo { call::in_group(tag.sender, tag.of_sender) } else { String::new() }
    }

    /// Sends a batch. What the answer does not confirm is sent again, by itself. Returns whether
    /// all are confirmed in the end.
    fn send_batch(&mut self, mut tags: Vec<Tag>, trace: &mut Trace) -> Result<bool, Error> {
        for _ in 0..REFUSED_TRIES {
            let texts: Vec<(String, String)> = tags.iter().map(|tag| self.entry(*tag)).collect();
            let texts = texts.iter().map(|(text, members)| (&**text, &**members));
            let body = call::send_batch_with(&self.queue.url, texts);
            let lost_before = self.lost_responses.load(Ordering::Relaxed);
            let answer = match self.front_ends.call("SendMessageBatch", &body) {
                Ok(answer) => answer,
                Err(error) => return trace.fail(error).map(|()| false),
            };
            let confirmed = call::confirmed(answer)
                .map_err(|source| Error::Answer { action: "SendMessageBatch", source })?;
            let now = now_ns();
            let lost = self.doubled_since(lost_before);
            trace.sent_again += lost * tags.len() as u64;
            let mut left: Vec<Option<Tag>> = tags.into_iter().map(Some).collect();
            for (place, id) in confirmed {
                if let Some(tag) = left.get_mut(place).and_then(Option::take) {
                    self.queue.note_sent(tag, id, now);
                    trace.messages += 1;
                }
            }
            tags = left.into_iter().flatten().collect();
            if tags.is_empty() {
                return Ok(true);
            }
        }
        trace.failures += 1;
        trace.first_failure.get_or_insert_with(|| call::refusal(tags.len()).to_string());
        Ok(false)
    }
}

/// The pauses of the experiment are its parameters.
pub(crate) fn pause(seconds: f64) {
    if seconds > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
}
