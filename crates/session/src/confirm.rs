//! Publisher confirms of one channel: which publishes still wait, in runs, and what to say of them.
//!
//! Confirms leave in the order of the publishes, so that an acknowledgement of many (`multiple`)
//! never covers one that was rejected. Clients that sort confirms back into order
//! (amqp091-go does) would otherwise report the rejected one as accepted.

use std::collections::VecDeque;

use quelea_store::{Progress, Ticket};

/// The publishes of a channel in confirm mode. They count from 1, from confirm.select on.
#[derive(Debug)]
pub(crate) struct Confirms {
    /// The last publish that was numbered.
    published: u64,
    /// The last publish of which the client knows.
    settled: u64,
    /// Those in between.
    runs: VecDeque<Run>,
}

/// Publishes in a row that wait for the same thing and get the same answer.
#[derive(Debug)]
struct Run {
    last: u64,
    ticket: Ticket,
    verdict: Verdict,
}

/// What became of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// basic.ack.
    Accepted,
    /// basic.nack.
    Rejected,
}

/// One basic.ack or basic.nack for the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Confirm {
    pub(crate) delivery_tag: u64,
    pub(crate) multiple: bool,
    pub(crate) verdict: Verdict,
}

impl Confirms {
    pub(crate) const fn new() -> Self {
        Self { published: 0, settled: 0, runs: VecDeque::new() }
    }

    /// Numbers a publish that the broker took; it is confirmed when `ticket` is reached.
    pub(crate) fn accepted(&mut self, ticket: Ticket) {
        self.push(ticket, Verdict::Accepted);
    }

    /// Numbers a publish that no queue wanted to keep (overflow reject-publish).
    pub(crate) fn rejected(&mut self) {
        self.push(Ticket::NONE, Verdict::Rejected);
    }

    /// The next thing to tell the publisher, if something is settled.
    pub(crate) fn settle(&mut self, progress: Progress) -> Option<Confirm> {
        let verdict = self.runs.front().filter(|run| progress.reached(run.ticket))?.verdict;
        let mut delivery_tag = self.settled;
        while let Some(run) = self.runs.front()
            && run.verdict == verdict
            && progress.reached(run.ticket)
        {
            delivery_tag = run.last;
            self.runs.pop_front();
        }
        let multiple = delivery_tag - self.settled > 1;
        self.settled = delivery_tag;
        Some(Confirm { delivery_tag, multiple, verdict })
    }

    /// Runs that wait: what they cost in memory, for the limit of waiting replies.
    pub(crate) fn waiting(&self) -> usize {
        self.runs.len()
    }

    /// Publishes that are not confirmed yet.
    pub(crate) const fn unconfirmed(&self) -> u64 {
        self.published - self.settled
    }

    fn push(&mut self, ticket: Ticket, verdict: Verdict) {
        self.published += 1;
        // What waits for nothing waits for those before it, since confirms leave in order.
        if let Some(run) = self.runs.back_mut()
            && run.verdict == verdict
            && (run.ticket == ticket || ticket == Ticket::NONE)
        {
            run.last = self.published;
            return;
        }
        self.runs.push_back(Run { last: self.published, ticket, verdict });
    }
}
