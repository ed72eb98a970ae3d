//! A sending thread of the experiment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use quelea_sqs_client::{Client, Error};

use crate::clock::now_ns;
use crate::sqs::args::SqsArgs;
use crate::sqs::call;
use crate::sqs::payload;
use crate::sqs::tracked_queue::TrackedQueue;

/// What a thread of the experiment saw.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// From the moment an operation is invoked to its response, tries that failed included.
    pub response_ns: Vec<u64>,
    pub first_ns: Option<u64>,
    pub last_ns: u64,
    /// Operations given up.
    pub failures: u64,
    pub first_failure: Option<String>,
    /// Receivers: messages processed and not deleted.
    pub forgotten: u64,
    /// Receivers: how often the thread quit.
    pub crashed: u64,
    /// Receivers: deletions that the service refused, since the message was not in their hands.
    pub refused_deletions: u64,
    /// Receivers: messages received and deleted.
    pub cycles: u64,
}

impl Trace {
    pub(crate) fn begin(&mut self, now: u64) {
        self.first_ns.get_or_insert(now);
    }

    /// An operation failed in all its tries. One that the service refuses for good ends the run.
    pub(crate) fn fail(&mut self, error: Error) -> Result<(), Error> {
        if !error.is_transient() {
            return Err(error);
        }
        self.failures += 1;
        self.first_failure.get_or_insert_with(|| error.to_string());
        Ok(())
    }
}

/// Sends one thread's messages; the generator makes their bodies.
pub(crate) fn run(
    args: &SqsArgs,
    queue: &TrackedQueue,
    mut client: Client,
    (sender, mut rng): (u32, Rng),
    stop: &AtomicBool,
) -> Result<Trace, Error> {
    let mut trace =
        Trace { response_ns: Vec::with_capacity(args.messages as usize), ..Trace::default() };
    for of_sender in 0..args.messages {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let tag = queue.tag(sender, of_sender);
        let body = call::send(&queue.url, &payload::make(tag, args.size, &mut rng), 0);
        let begun = now_ns();
        trace.begin(begun);
        match client.call("SendMessage", &body) {
            Ok(_) => {
                let ended = now_ns();
                trace.response_ns.push(ended - begun);
                trace.last_ns = ended;
                queue.note_sent(tag, ended);
            }
            Err(error) => trace.fail(error)?,
        }
        pause(args.send_delay_s);
    }
    Ok(trace)
}

/// The pauses of the experiment are its parameters.
pub(crate) fn pause(seconds: f64) {
    if seconds > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
}
