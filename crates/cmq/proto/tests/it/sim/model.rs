//! What was pushed, and what each mode promises about it.

use std::collections::BTreeMap;

use quelea_cmq_proto::Mode;

use super::message::Name;
use super::plan::Plan;
use super::process::End;

/// Everything that the application knows of one flow in one life of its sender.
#[derive(Debug, Default)]
struct Stream {
    /// Messages that a push took.
    accepted: u32,
    /// How often each came to the application, in any life of the receiver.
    times: Vec<u8>,
    /// The last that came in the receiver's present life.
    last: Option<u32>,
    /// All below were processed by the application, if the mode keeps order.
    processed_below: u32,
    /// Whether one came that does not follow the one before it, if the mode keeps order.
    resumed: bool,
    receiver_life: u16,
}

/// What both ends say of a flow's losses.
#[derive(Debug, Default)]
struct Losses {
    at_receiver: u64,
    at_sender: u64,
}

/// The naive model of all flows.
#[derive(Debug)]
pub(crate) struct Model {
    plan: Plan,
    streams: BTreeMap<(u16, u16), Stream>,
    losses: Vec<Losses>,
    /// Deliveries in all, to compare runs.
    pub(crate) delivered: u64,
}

impl Model {
    pub(crate) fn new(plan: &Plan) -> Self {
        let losses = plan.flows.iter().map(|_| Losses::default()).collect();
        Self { plan: plan.clone(), streams: BTreeMap::new(), losses, delivered: 0 }
    }

    /// Returns the name of the next message of a flow, in the sender's present life.
    pub(crate) fn next(&mut self, flow: usize, life: u16) -> Name {
        let flow = flow as u16;
        let stream = self.streams.entry((flow, life)).or_default();
        Name { flow, life, index: stream.accepted }
    }

    pub(crate) fn accepted(&mut self, name: Name) {
        let stream = self.streams.get_mut(&(name.flow, name.life)).expect("it was named by next");
        stream.accepted += 1;
        stream.times.push(0);
    }

    pub(crate) fn lost_at_receiver(&mut self, flow: usize, messages: u64) {
        self.losses[flow].at_receiver += messages;
    }

    pub(crate) fn lost_at_sender(&mut self, flow: usize, messages: u64) {
        self.losses[flow].at_sender += messages;
    }

    /// The application got a message.
    pub(crate) fn deliver(&mut self, flow: usize, receiver_life: u16, message: &[u8]) {
        self.delivered += 1;
        let name = Name::of(message).unwrap_or_else(|| panic!("flow {flow}: bytes nobody pushed"));
        assert_eq!(usize::from(name.flow), flow, "a message came to another flow's mailbox");
        let mode = self.plan.flows[flow].mode;
        let stream = self.streams.get_mut(&(name.flow, name.life)).expect("somebody pushed it");
        let index = name.index;
        assert!(index < stream.accepted, "{name:?} was never pushed");
        let anew = stream.receiver_life != receiver_life;
        if anew {
            stream.receiver_life = receiver_life;
            stream.last = None;
        }
        let last = stream.last;
        match mode {
            // Another life of the receiver may get again what the last one got.
            Mode::Lossy | Mode::ReliableUnordered => {
                let again = stream.times[index as usize] > 0 && receiver_life == 0;
                assert!(!again, "{name:?} came twice");
            }
            Mode::LatestOnly => {
                assert!(last.is_none_or(|last| last < index), "{name:?} after {last:?}");
            }
            // Another life's first flow may end when the sender learns of it, and a new one begins
            // with what was not processed.
            Mode::ReliableUntil(_) => {
                let newer = last.is_none_or(|last| last < index) || receiver_life > 0;
                assert!(newer, "{name:?} after {last:?}");
            }
            Mode::ReliableOrdered => {
                // Another life's first flow may get the beginning again, from copies that were under
                // way. When the sender learns of that life, a new flow begins with what was not
                // acknowledged to it: before or behind what the first came to, and late copies may
                // let both go on. What the application never got is not skipped.
                let follows = last.is_none_or(|last| index == last + 1);
                stream.resumed |= !follows;
                let may = index <= stream.processed_below && (follows || receiver_life > 0);
                assert!(may, "{name:?} after {last:?}");
            }
        }
        stream.last = Some(index);
        stream.processed_below = stream.processed_below.max(index + 1);
        stream.times[index as usize] = stream.times[index as usize].saturating_add(1);
    }

    /// What must hold once everything is settled.
    pub(crate) fn check_settled(&self, ends: &[End]) {
        for (&(flow, life), stream) in &self.streams {
            let plan = &self.plan.flows[usize::from(flow)];
            let losses = &self.losses[usize::from(flow)];
            let came = stream.times.iter().filter(|&&times| times > 0).count() as u64;
            let accepted = u64::from(stream.accepted);
            let ended = life != ends[plan.from].life;
            let restarts = self.plan.restarts(plan.from) || self.plan.restarts(plan.to);
            let what = format!("flow {flow}, life {life}, {:?}", plan.mode);
            // Forgers claim what was never sent, and who never proves itself may be one.
            let unproven = ends[plan.to].unproven_lost;
            match plan.mode {
                Mode::ReliableOrdered | Mode::ReliableUnordered if !ended => {
                    assert_eq!(came, accepted, "{what}: messages are missing");
                    assert_eq!(losses.at_sender, 0, "{what}");
                    let explained = !stream.resumed || ends[plan.from].restarts > 0;
                    assert!(explained, "{what}: the sender began no new flow");
                }
                Mode::Lossy if !restarts => {
                    let known = came + losses.at_receiver;
                    // A full mailbox drops, and counts for all its flows together.
                    let full = ends[plan.to].no_room;
                    // Without credit nobody asks for a tail that is lost.
                    let explained = known + full + unproven >= accepted || !plan.credit;
                    assert!(explained, "{what}: {came} of {accepted}, {losses:?}");
                    assert!(known <= accepted, "{what}: {came} of {accepted}, {losses:?}");
                }
                Mode::ReliableUntil(_) if !restarts => {
                    assert_eq!(came + losses.at_sender, accepted, "{what}: {losses:?}");
                    let reported = losses.at_receiver..=losses.at_receiver + unproven;
                    assert!(reported.contains(&losses.at_sender), "{what}: {losses:?}");
                }
                _ => {}
            }
        }
    }
}

/// The model itself must be able to fail.
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Pushes five messages and delivers those of `came`, to a life of the receiver each; returns
    /// whether the model says yes, at once and when all is settled with so many messages counted as
    /// lost and so many flows begun anew by the sender.
    fn says_yes(mode: Mode, came: &[&[u32]], lost: u64, restarts: u64) -> bool {
        let mut plan = Plan::plain(mode, 5);
        plan.flows[0].mode = mode;
        let mut model = Model::new(&plan);
        for _ in 0..5 {
            let name = model.next(0, 0);
            model.accepted(name);
        }
        let check = || {
            for (life, came) in (0..).zip(came) {
                for &index in *came {
                    model.deliver(0, life, &Name { flow: 0, life: 0, index }.message(20));
                }
            }
            model.lost_at_receiver(0, lost);
            model.lost_at_sender(0, lost);
            model.check_settled(&[End { restarts, ..End::default() }; 2]);
        };
        catch_unwind(AssertUnwindSafe(check)).is_ok()
    }

    #[test]
    fn the_model_knows_what_each_mode_promises() {
        let until = Mode::ReliableUntil(std::time::Duration::from_secs(1));
        let cases: [(Mode, &[u32], u64, bool); 20] = [
            (Mode::Lossy, &[3, 0, 1], 2, true),
            (Mode::Lossy, &[3, 0, 1], 1, false),
            (Mode::Lossy, &[3, 0, 1, 0], 2, false),
            (Mode::LatestOnly, &[0, 2, 4], 0, true),
            (Mode::LatestOnly, &[0, 2, 1], 0, false),
            (Mode::LatestOnly, &[0, 0], 0, false),
            (Mode::ReliableUnordered, &[4, 0, 2, 1, 3], 0, true),
            (Mode::ReliableUnordered, &[4, 0, 2, 1], 0, false),
            (Mode::ReliableUnordered, &[4, 0, 2, 1, 3, 3], 0, false),
            (Mode::ReliableOrdered, &[0, 1, 2, 3, 4], 0, true),
            (Mode::ReliableOrdered, &[0, 1, 2, 3], 0, false),
            (Mode::ReliableOrdered, &[1, 2, 3, 4], 0, false),
            (Mode::ReliableOrdered, &[0, 2, 1, 3, 4], 0, false),
            (Mode::ReliableOrdered, &[0, 1, 1, 2, 3, 4], 0, false),
            (Mode::ReliableOrdered, &[0, 1, 2, 3, 4, 5], 0, false),
            (until, &[0, 1, 4], 2, true),
            (until, &[0, 1, 4], 1, false),
            (until, &[0, 1, 4], 3, false),
            (until, &[0, 4, 1], 2, false),
            (until, &[0, 1, 1, 4], 2, false),
        ];
        for (mode, came, lost, yes) in cases {
            let said = says_yes(mode, &[came], lost, 0);
            assert_eq!(said, yes, "{mode:?}: {came:?}, {lost} lost");
        }
    }

    #[test]
    fn a_receiver_started_anew_gets_some_again_and_misses_none() {
        let cases: [(&[u32], u64, bool); 8] = [
            (&[3, 4], 0, true),
            (&[1, 2, 3, 4], 0, true),
            // The old flow's beginning once more, then the new flow.
            (&[0, 1, 2, 1, 2, 3, 4], 1, true),
            (&[0, 1, 2, 1, 2, 3, 4], 0, false),
            (&[0, 1, 3, 4], 1, true),
            (&[0, 1, 3, 4], 0, false),
            (&[4, 3], 1, false),
            (&[0, 4, 3], 1, false),
        ];
        for (came, restarts, yes) in cases {
            let said = says_yes(Mode::ReliableOrdered, &[&[0, 1, 2], came], 0, restarts);
            assert_eq!(said, yes, "{came:?}, {restarts} flows begun anew");
        }
    }

    #[test]
    fn a_message_that_was_changed_is_seen() {
        let name = Name { flow: 1, life: 2, index: 3 };
        let message = name.message(100);
        assert_eq!(Name::of(&message), Some(name));
        for at in 0..message.len() {
            let mut changed = message.clone();
            changed[at] ^= 0x10;
            assert_ne!(Name::of(&changed), Some(name), "byte {at}");
        }
        assert_eq!(Name::of(&message[..7]), None);
    }
}
