//! Which message of a queue is given out next.

use quelea_model::Seq;
use quelea_store::QueuedMessage;

use super::Queue;
use super::groups::Ordering;
use super::ready_messages::Head;
use crate::random::Random;

/// The message that is given out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// There is none that may be given out.
    Nothing,
    /// The first.
    Front,
    /// This one.
    This(Seq),
    /// One that has to be read first: this one, or whatever is at the head.
    Absent(Option<Seq>),
}

impl Queue {
    /// Chooses by groups where they matter. Without them the first; with `random` one of the order
    /// hint's number of first ones (BDQS §III-B.2), as far as they are in memory.
    /// `received` is the last message that the same receive has.
    pub(crate) fn choose(&mut self, random: Option<&mut Random>, received: Option<Seq>) -> Choice {
        if let Some(groups) = &mut self.groups {
            if groups.is_unknown {
                return if self.ready.is_empty() { Choice::Nothing } else { Choice::Absent(None) };
            }
            // Of a fair queue: from before there were groups.
            let is_older = groups.ordering() == Ordering::Fair
                && self.ready.head_seq().is_none_or(|seq| !groups.knows(seq));
            if is_older {
                return self.choose_plainly(random);
            }
            return match groups.next(received) {
                None => Choice::Nothing,
                Some(seq) => match self.ready.get(seq) {
                    Some(held) if held.body.is_some() => Choice::This(seq),
                    _ => Choice::Absent(Some(seq)),
                },
            };
        }
        self.choose_plainly(random)
    }

    fn choose_plainly(&self, random: Option<&mut Random>) -> Choice {
        match self.ready.head() {
            Head::Empty => Choice::Nothing,
            Head::Absent => Choice::Absent(None),
            Head::Here => match random {
                Some(random) => self.one_of_the_first(random),
                None => Choice::Front,
            },
        }
    }

    fn one_of_the_first(&self, random: &mut Random) -> Choice {
        let among = usize::from(self.settings().order_hint).min(self.ready.len());
        if among <= 1 {
            return Choice::Front;
        }
        let chosen = self.ready.nth(random.below(among));
        let is_here = |seq: &Seq| self.ready.get(*seq).is_some_and(|held| held.body.is_some());
        chosen.filter(is_here).map_or(Choice::Front, Choice::This)
    }

    /// Takes what was chosen out of the visible messages. Its group still counts it as visible.
    pub(crate) fn take(&mut self, choice: Choice) -> Option<QueuedMessage> {
        match choice {
            Choice::Front => self.ready.pop(),
            Choice::This(seq) => self.ready.remove(seq),
            Choice::Nothing | Choice::Absent(_) => None,
        }
    }
}
