//! Publisher confirms of one channel: which publishes still wait, in runs, and what to say of them.
//!
//! Confirms leave in the order of the publishes, so that an acknowledgement of many (`multiple`)
//! never covers one that was rejected. Clients that sort confirms back into order
//! (amqp091-go does) would otherwise report the rejected one as accepted.

use std::collections::VecDeque;

use quelea_model::{LatencyHistogram, Time};
use quelea_store::{Progress, Ticket};

/// How long publishers waited for their confirms.
#[derive(Debug, Default)]
pub struct ConfirmMeter {
    /// What the time is for the confirms that leave now.
    pub time: Time,
    /// How long all took that left: from the input that held the publish, or the first of those that wait for the same
    /// write, until its confirm was ready to be written.
    pub latencies: LatencyHistogram,
    /// Publishes of all channels that their clients know to be accepted.
    pub accepted: u64,
}

/// The publishes of a channel in confirm mode. They count from 1, from confirm.select on.
#[derive(Debug)]
pub(crate) struct Confirms {
    /// The last publish that was numbered.
    published: u64,
    /// The last publish of which the client knows.
    settled: u64,
    /// How many of these were accepted.
    accepted: u64,
    /// Those in between.
    runs: VecDeque<Run>,
}

/// Publishes in a row that wait for the same thing and get the same answer.
#[derive(Debug)]
struct Run {
    last: u64,
    ticket: Ticket,
    verdict: Verdict,
    /// When the input came with the first of them.
    since: Time,
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
        Self { published: 0, settled: 0, accepted: 0, runs: VecDeque::new() }
    }

    /// Numbers a publish that the broker took from the input of `since`; it is confirmed when `ticket` is reached.
    pub(crate) fn accepted(&mut self, ticket: Ticket, since: Time) {
        self.push(ticket, Verdict::Accepted, since);
    }

    /// Numbers a publish that no queue wanted to keep (overflow reject-publish).
    pub(crate) fn rejected(&mut self, since: Time) {
        self.push(Ticket::NONE, Verdict::Rejected, since);
    }

    /// Returns the next thing to send to the publisher, if something is settled.
    pub(crate) fn settle(
        &mut self,
        progress: Progress,
        meter: &mut ConfirmMeter,
    ) -> Option<Confirm> {
        let verdict = self.runs.front().filter(|run| progress.reached(run.ticket))?.verdict;
        let mut delivery_tag = self.settled;
        while let Some(run) = self.runs.front()
            && run.verdict == verdict
            && progress.reached(run.ticket)
        {
            meter.latencies.record(meter.time.since_us(run.since), run.last - delivery_tag);
            delivery_tag = run.last;
            self.runs.pop_front();
        }
        let settled = delivery_tag - self.settled;
        if verdict == Verdict::Accepted {
            self.accepted += settled;
            meter.accepted += settled;
        }
        let multiple = settled > 1;
        self.settled = delivery_tag;
        Some(Confirm { delivery_tag, multiple, verdict })
    }

    /// Returns how many publishes the client knows to be accepted.
    pub(crate) const fn confirmed(&self) -> u64 {
        self.accepted
    }

    /// Returns how many publishes the client knows nothing of yet.
    pub(crate) const fn unconfirmed(&self) -> u64 {
        self.published - self.settled
    }

    /// Returns how many runs wait: what they cost in memory, for the limit of waiting replies.
    pub(crate) fn waiting(&self) -> usize {
        self.runs.len()
    }

    fn push(&mut self, ticket: Ticket, verdict: Verdict, since: Time) {
        self.published += 1;
        // What waits for nothing waits for those before it, since confirms leave in order.
        if let Some(run) = self.runs.back_mut()
            && run.verdict == verdict
            && (run.ticket == ticket || ticket == Ticket::NONE)
        {
            run.last = self.published;
            return;
        }
        self.runs.push_back(Run { last: self.published, ticket, verdict, since });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quelea_model::{QueueId, Timestamp};
    use quelea_store::{Durability, MemStore, Store};

    use super::*;

    /// A log that takes one batch a call and writes when `sync` is called.
    struct Log(MemStore);

    impl Log {
        fn new() -> Self {
            Self(MemStore::pumped())
        }

        fn batch(&mut self) -> Ticket {
            self.0.append_queue_deleted(QueueId(1));
            self.0.ticket(Durability::Fsync)
        }

        fn sync(&mut self) -> Progress {
            assert!(self.0.poll_job(Timestamp::ZERO).is_none());
            self.0.progress()
        }
    }

    fn settle(confirms: &mut Confirms, progress: Progress) -> Option<Confirm> {
        confirms.settle(progress, &mut ConfirmMeter::default())
    }

    fn confirm(delivery_tag: u64, multiple: bool, verdict: Verdict) -> Option<Confirm> {
        Some(Confirm { delivery_tag, multiple, verdict })
    }

    #[test]
    fn publishes_that_wait_for_one_sync_are_confirmed_at_once() {
        let (mut log, mut confirms) = (Log::new(), Confirms::new());
        for ticket in [log.batch(), log.batch(), log.batch()] {
            confirms.accepted(ticket, Time::ZERO);
        }
        assert_eq!(settle(&mut confirms, Progress::default()), None);
        assert_eq!((confirms.waiting(), confirms.confirmed()), (3, 0));
        assert_eq!(confirms.unconfirmed(), 3);
        assert_eq!(settle(&mut confirms, log.sync()), confirm(3, true, Verdict::Accepted));
        assert_eq!(settle(&mut confirms, log.sync()), None);
        assert_eq!(confirms.waiting(), 0);
    }

    #[test]
    fn a_single_publish_is_not_confirmed_as_several() {
        let mut confirms = Confirms::new();
        for delivery_tag in 1..4 {
            confirms.accepted(Ticket::NONE, Time::ZERO);
            let settled = settle(&mut confirms, Progress::default());
            assert_eq!(settled, confirm(delivery_tag, false, Verdict::Accepted));
        }
    }

    #[test]
    fn what_waits_for_nothing_waits_for_those_before_it() {
        let (mut log, mut confirms) = (Log::new(), Confirms::new());
        confirms.accepted(log.batch(), Time::ZERO);
        for _ in 0..1000 {
            confirms.accepted(Ticket::NONE, Time::ZERO);
        }
        assert_eq!(confirms.waiting(), 1);
        assert_eq!(settle(&mut confirms, Progress::default()), None);
        assert_eq!(settle(&mut confirms, log.sync()), confirm(1001, true, Verdict::Accepted));
    }

    #[test]
    fn a_rejected_publish_is_told_in_its_place() {
        let mut confirms = Confirms::new();
        confirms.accepted(Ticket::NONE, Time::ZERO);
        confirms.accepted(Ticket::NONE, Time::ZERO);
        confirms.rejected(Time::ZERO);
        confirms.accepted(Ticket::NONE, Time::ZERO);
        let progress = Progress::default();
        assert_eq!(settle(&mut confirms, progress), confirm(2, true, Verdict::Accepted));
        assert_eq!(settle(&mut confirms, progress), confirm(3, false, Verdict::Rejected));
        assert_eq!(settle(&mut confirms, progress), confirm(4, false, Verdict::Accepted));
        assert_eq!(settle(&mut confirms, progress), None);
        assert_eq!((confirms.confirmed(), confirms.unconfirmed()), (3, 0));
    }

    #[test]
    fn a_publish_has_waited_since_the_input_with_the_first_of_its_run() {
        let (mut log, mut confirms) = (Log::new(), Confirms::new());
        let at = Time::from_micros;
        let mut meter = ConfirmMeter { time: at(5_000), ..ConfirmMeter::default() };
        confirms.accepted(Ticket::NONE, at(4_000));
        confirms.accepted(Ticket::NONE, at(4_900));
        let ticket = log.batch();
        confirms.accepted(ticket, at(4_950));
        assert!(confirms.settle(Progress::default(), &mut meter).is_some());
        meter.time = at(9_000);
        assert!(confirms.settle(log.sync(), &mut meter).is_some());
        let mut expected = LatencyHistogram::default();
        expected.record(1_000, 2);
        expected.record(4_050, 1);
        assert_eq!(meter.latencies, expected);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Transient,
        Persistent,
        Rejected,
        Sync,
    }

    proptest! {
        #[test]
        fn each_publish_gets_its_verdict_once_in_order_and_not_early(
            steps in proptest::collection::vec(
                prop_oneof![
                    Just(Step::Transient), Just(Step::Persistent), Just(Step::Rejected),
                    Just(Step::Sync),
                ],
                0..200,
            )
        ) {
            let (mut log, mut confirms) = (Log::new(), Confirms::new());
            let mut meter = ConfirmMeter::default();
            let mut expected = Vec::new();
            let mut confirmed = Vec::new();
            for step in steps.iter().copied().chain([Step::Sync]) {
                match step {
                    Step::Transient => {
                        confirms.accepted(Ticket::NONE, Time::ZERO);
                        expected.push((Verdict::Accepted, Ticket::NONE));
                    }
                    Step::Persistent => {
                        let ticket = log.batch();
                        confirms.accepted(ticket, Time::ZERO);
                        expected.push((Verdict::Accepted, ticket));
                    }
                    Step::Rejected => {
                        confirms.rejected(Time::ZERO);
                        expected.push((Verdict::Rejected, Ticket::NONE));
                    }
                    Step::Sync => {
                        log.sync();
                    }
                }
                let progress = log.0.progress();
                while let Some(confirm) = confirms.settle(progress, &mut meter) {
                    let first = confirmed.len();
                    let last = confirm.delivery_tag as usize;
                    prop_assert_eq!(confirm.multiple, last - first > 1);
                    for &(verdict, ticket) in &expected[first..last] {
                        prop_assert_eq!(verdict, confirm.verdict);
                        prop_assert!(progress.reached(ticket));
                        confirmed.push(confirm.verdict);
                    }
                }
            }
            prop_assert_eq!(confirmed.len(), expected.len());
            prop_assert_eq!(meter.latencies.count(), expected.len() as u64);
        }
    }
}
