//! The publishing half of a connection: what it sends, when, and how far ahead of the confirms.

use crate::clock::SECOND_NS;
use crate::inbox::Delivery;
use crate::ledger::{Audit, Ledger, Replies};
use crate::schedule::Schedule;
use crate::template::Template;
use crate::window::Window;

/// Bytes of frames made before they are written: large enough that a system call is shared by
/// hundreds of small messages, small enough to stay in the processor's cache.
const FILL_BYTES: usize = 64 * 1024;
/// And at most so many messages, so that the stamp of a batch, taken once, is true for all of it.
const FILL_MESSAGES: u64 = 1024;

/// When the next message goes out.
#[derive(Debug)]
pub(crate) enum Pace {
    /// As soon as the socket and the window take it (closed loop).
    Free,
    /// At its intended time, whatever the broker does (open loop).
    Scheduled(Schedule),
    /// When the reply to the last one is there (ping-pong).
    OnReply,
    /// Not at all, until another pace is set.
    Paused,
}

/// One channel's publisher.
#[derive(Debug)]
pub(crate) struct Publisher {
    templates: Vec<Template>,
    next_template: usize,
    pace: Pace,
    window: Option<Window>,
    /// Messages per write.
    batch: u64,
    /// Messages still to be sent.
    remaining: u64,
    /// Replies still awaited: the end of a round of the paper's benchmarks.
    replies_due: u64,
    /// All that are awaited in a round.
    replies_in_round: u64,
    /// What came back since the round began.
    reply_audit: Audit,
    credit: bool,
    last_sent: u64,
    last_stamp: u64,
    /// What was sent since the round began.
    pub ledger: Ledger,
    /// When the first message of the round went out, and when its last reply was there.
    pub started_ns: u64,
    pub finished_ns: u64,
}

impl Publisher {
    /// Returns a publisher of `templates` in turn, `remaining` messages in all (`u64::MAX`: no
    /// end).
    pub(crate) fn new(templates: Vec<Template>, pace: Pace, confirm: u64, remaining: u64) -> Self {
        debug_assert!(!templates.is_empty(), "a publisher needs something to publish");
        Self {
            templates,
            next_template: 0,
            pace,
            window: (confirm > 0).then(|| Window::new(confirm)),
            batch: FILL_MESSAGES,
            remaining,
            replies_due: 0,
            replies_in_round: 0,
            reply_audit: Audit::default(),
            credit: true,
            last_sent: 0,
            last_stamp: 0,
            ledger: Ledger::default(),
            started_ns: 0,
            finished_ns: 0,
        }
    }

    /// Begins a round: `messages` of `template`, ended by `replies`.
    pub(crate) fn begin_round(
        &mut self,
        template: Template,
        pace: Pace,
        messages: u64,
        replies: u64,
    ) {
        self.templates = vec![template];
        self.next_template = 0;
        self.pace = pace;
        self.remaining = messages;
        (self.replies_due, self.replies_in_round) = (replies, replies);
        self.reply_audit = Audit::default();
        self.credit = true;
        self.ledger = Ledger::default();
        self.started_ns = 0;
        self.finished_ns = 0;
    }

    /// At most `messages` per write; 0 for as many as is sensible.
    pub(crate) fn set_batch(&mut self, messages: u64) {
        self.batch = if messages == 0 { FILL_MESSAGES } else { messages.min(FILL_MESSAGES) };
    }

    /// Returns whether its writes are kept smaller than they could be.
    pub(crate) const fn writes_small(&self) -> bool {
        self.batch < FILL_MESSAGES
    }

    pub(crate) fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// Appends what may be sent now to `out`; returns the number of messages.
    pub(crate) fn fill(&mut self, out: &mut Vec<u8>, now: u64) -> u64 {
        let mut count = 0;
        while out.len() < FILL_BYTES && count < self.batch && self.may_send() {
            let Some(at) = self.take_turn(now) else { break };
            // So that each is another's.
            let stamp = at.max(self.last_stamp + 1);
            self.last_stamp = stamp;
            self.ledger.add(stamp);
            self.templates[self.next_template].append(out, stamp);
            self.next_template += 1;
            if self.next_template == self.templates.len() {
                self.next_template = 0;
            }
            if let Some(window) = &mut self.window {
                window.push(stamp);
            }
            count += 1;
            self.remaining -= 1;
        }
        if count > 0 && self.started_ns == 0 {
            self.started_ns = now;
        }
        count
    }

    fn take_turn(&mut self, now: u64) -> Option<u64> {
        match &mut self.pace {
            Pace::Free => Some(now),
            Pace::Scheduled(schedule) => schedule.take_due(now),
            Pace::OnReply => std::mem::take(&mut self.credit).then(|| {
                self.last_sent = now;
                now
            }),
            Pace::Paused => None,
        }
    }

    fn may_send(&self) -> bool {
        self.remaining > 0 && self.window.as_ref().is_none_or(Window::has_room)
    }

    /// Returns when it can send next by its own clock: `Some(now)` for at once, `None` if it waits
    /// for the broker.
    pub(crate) fn wakes_at(&self, now: u64) -> Option<u64> {
        if !self.may_send() {
            return None;
        }
        match &self.pace {
            Pace::Free => Some(now),
            Pace::Scheduled(schedule) => Some(schedule.next_ns().max(now)),
            Pace::OnReply => self.credit.then_some(now),
            Pace::Paused => None,
        }
    }

    pub(crate) const fn window(&mut self) -> Option<&mut Window> {
        self.window.as_mut()
    }

    /// Takes a reply that arrived. Returns the time since the message was sent that it answers
    /// (ping-pong).
    pub(crate) fn reply(&mut self, delivery: &Delivery, now: u64) -> Option<u64> {
        match self.pace {
            Pace::OnReply => self.reply_audit.add(delivery),
            // Each consumer replies once.
            _ => self.reply_audit.add_in_any_order(delivery),
        }
        self.replies_due = self.replies_due.saturating_sub(1);
        self.credit = true;
        if self.replies_due == 0 {
            self.finished_ns = now;
        }
        matches!(self.pace, Pace::OnReply).then(|| now.saturating_sub(self.last_sent))
    }

    /// Returns what came back, beside what had to: in ping-pong each message, else what the
    /// [`Reply::After`] of each consumer has made of the last one.
    ///
    /// [`Reply::After`]: crate::subscriber::Reply::After
    pub(crate) fn replies(&self) -> Replies {
        let mut expected = self.ledger;
        if !matches!(self.pace, Pace::OnReply) {
            expected = Ledger::default();
            (0..self.replies_in_round).for_each(|number| expected.add(self.last_stamp + number));
        }
        Replies { expected, audit: self.reply_audit }
    }

    /// Returns whether everything is sent, confirmed and replied to.
    pub(crate) fn is_finished(&self) -> bool {
        self.remaining == 0
            && self.replies_due == 0
            && self.window.as_ref().is_none_or(Window::is_empty)
    }

    /// Returns how far behind its schedule it is, in nanoseconds.
    pub(crate) fn lag_ns(&self, now: u64) -> u64 {
        match &self.pace {
            Pace::Scheduled(schedule) => {
                now.saturating_sub(schedule.next_ns()).min(SECOND_NS * 3600)
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::Confirm;
    use crate::template::Message;

    fn template(size: usize) -> Template {
        let message = Message {
            channel: 1,
            exchange: "",
            routing_key: "q",
            size,
            persistent: false,
            mandatory: false,
            stamped: true,
        };
        Template::new(&message, 131_072)
    }

    fn delivery(stamp: u64) -> Delivery {
        Delivery { tag: 1, stamp, size: 8, is_damaged: false }
    }

    #[test]
    fn a_window_stops_the_publisher_until_confirms_come() {
        let mut publisher = Publisher::new(vec![template(16)], Pace::Free, 3, u64::MAX);
        let mut out = Vec::new();
        assert_eq!(publisher.fill(&mut out, 5), 3);
        assert_eq!(publisher.wakes_at(6), None);
        let confirm = Confirm { tag: 2, multiple: true, accepted: true };
        publisher.window().unwrap().settle(confirm, |_| ()).unwrap();
        assert_eq!(publisher.fill(&mut out, 7), 2);
    }

    #[test]
    fn a_batch_ends_at_its_bytes_and_at_its_messages() {
        let mut out = Vec::new();
        let mut large = Publisher::new(vec![template(60_000)], Pace::Free, 0, u64::MAX);
        assert_eq!(large.fill(&mut out, 1), 2);
        out.clear();
        let mut small = Publisher::new(vec![template(1)], Pace::Free, 0, u64::MAX);
        assert!(small.fill(&mut out, 1) <= FILL_MESSAGES && out.len() < FILL_BYTES + 100);
    }

    #[test]
    fn a_counted_publisher_stops_and_is_finished_once_all_is_confirmed() {
        let mut publisher = Publisher::new(vec![template(16)], Pace::Free, 10, 4);
        assert_eq!(publisher.fill(&mut Vec::new(), 1), 4);
        assert!(!publisher.is_finished());
        let confirm = Confirm { tag: 4, multiple: true, accepted: true };
        publisher.window().unwrap().settle(confirm, |_| ()).unwrap();
        assert!(publisher.is_finished());
    }

    #[test]
    fn ping_pong_sends_one_and_waits_for_its_reply() {
        let mut publisher = Publisher::new(vec![template(16)], Pace::Paused, 0, 0);
        publisher.begin_round(template(8), Pace::OnReply, 2, 2);
        let mut out = Vec::new();
        assert_eq!(publisher.fill(&mut out, 100), 1);
        assert_eq!(publisher.fill(&mut out, 110), 0);
        assert_eq!(publisher.reply(&delivery(100), 150), Some(50));
        assert_eq!(publisher.fill(&mut out, 160), 1);
        assert_eq!(publisher.reply(&delivery(160), 170), Some(10));
        assert!(publisher.is_finished());
        assert_eq!((publisher.started_ns, publisher.finished_ns), (100, 170));
        assert_eq!(publisher.replies().complaint(), None);
        publisher.reply(&delivery(160), 180);
        assert_eq!(publisher.replies().complaint().as_deref(), Some("3 replies arrived of 2"));
    }

    #[test]
    fn each_consumer_replies_once_to_the_last_message_in_any_order() {
        let complaint = |stamps: &[u64]| {
            let mut publisher = Publisher::new(vec![template(16)], Pace::Paused, 0, 0);
            publisher.begin_round(template(8), Pace::Free, 2, 3);
            assert_eq!(publisher.fill(&mut Vec::new(), 100), 2);
            stamps
                .iter()
                .for_each(|stamp| assert_eq!(publisher.reply(&delivery(*stamp), 150), None));
            publisher.replies().complaint()
        };
        assert_eq!(complaint(&[102, 101, 103]), None);
        assert_eq!(complaint(&[101, 102]).as_deref(), Some("1 of 3 replies are lost"));
        for stamps in [[101, 101, 103], [100, 101, 102]] {
            assert_eq!(complaint(&stamps).as_deref(), Some("other replies arrived than were sent"));
        }
    }

    #[test]
    fn a_schedule_is_caught_up_with_after_a_stall() {
        let pace = Pace::Scheduled(Schedule::share(1_000, 0, 1, 0));
        let mut publisher = Publisher::new(vec![template(16)], pace, 0, u64::MAX);
        let mut out = Vec::new();
        assert_eq!(publisher.fill(&mut out, 0), 1);
        assert_eq!(publisher.wakes_at(0), Some(1_000_000));
        assert_eq!(publisher.lag_ns(50_000_000), 49_000_000);
        assert_eq!(publisher.fill(&mut out, 50_000_000), 50);
        assert_eq!(publisher.lag_ns(50_000_000), 0);
    }
}
