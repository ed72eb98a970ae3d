//! Front-ends: which owns the queue, and how one comes to.

use quelea_cassandra_fifo::{
    Now, Owner, OwnerRow, SegmentRow, TakeOver, Watch, listed_from, tail_of, take_over,
};
use uuid::Uuid;

use crate::front_end::{FrontEnd, Purpose};
use crate::replicas::{Key, Partition, Rows, Value};

use crate::fifo_simulation::FifoSimulation;
use crate::happenings::*;

impl FifoSimulation {
    pub(crate) fn crash(&mut self, at: usize) {
        let old = &self.front_ends[at];
        self.front_ends[at] = FrontEnd {
            life: old.life + 1,
            wall_skew_ms: self.rng.i64(-400..400),
            steady_offset_ms: self.rng.u64(..1_000_000),
            ..FrontEnd::default()
        };
        self.deferred[at].clear();
        self.agenda.after(TICK_US, Happening::Tick(at));
        // A second tick of its own would only tick more often; the old one goes on.
    }

    pub(crate) fn tick(&mut self, at: usize) {
        self.agenda.after(TICK_US, Happening::Tick(at));
        let (now, owners_now) = (self.now(at), self.owners_now(at));
        if let Some(owner) = &mut self.front_ends[at].owner {
            // Renewals go by the real clock.
            owner.tick(if self.chaos.is_fenced { now } else { owners_now });
            self.carry_out(at);
        } else if !self.front_ends[at].is_asking && self.rng.f64() < 0.2 {
            self.front_ends[at].is_asking = true;
            self.read_owner(at);
        }
    }

    pub(crate) fn answered(&mut self, request: u64, answer: Answer) {
        let Some(Request { front_end: at, life, purpose, .. }) = self.requests.get(&request) else {
            return;
        };
        let (at, life, purpose) = (*at, *life, purpose.clone());
        if self.front_ends[at].life != life {
            return;
        }
        self.front_ends[at].is_asking = false;
        match (purpose, answer) {
            (Purpose::Row, Answer::Row(row)) => self.saw_row(at, row),
            (Purpose::Directory(row), Answer::Read(rows)) => self.saw_directory(at, row, rows),
            (Purpose::Tail(row, listed), Answer::Read(rows)) => {
                let last = match rows.get(&Key::Last) {
                    Some((_, Some(Value::Last(last)))) => Some(*last),
                    _ => None,
                };
                self.claim(at, row, listed, last);
            }
            (Purpose::Claim { asked_at, take, holder }, Answer::Applied(true)) => {
                self.own(at, asked_at, take, holder);
            }
            (Purpose::Renew { asked_at }, answer) => {
                let now = self.owners_now(at);
                let owner = self.front_ends[at].owner.as_mut().unwrap();
                match answer {
                    Answer::Applied(true) => owner.renewed(asked_at.steady_ms, now),
                    Answer::Applied(false) => owner.lost(),
                    _ => owner.renewal_failed(now),
                }
            }
            (Purpose::Begin(batch), Answer::Written) => self.write_batch(at, batch),
            (Purpose::Batch(_), Answer::Written) => {
                let now = self.owners_now(at);
                self.front_ends[at].owner.as_mut().unwrap().written(now);
            }
            (Purpose::Discard(_), Answer::Written) => self.discarded(at, true),
            (Purpose::Discard(batch), _) => {
                let effect = RetriedEffect::Discard(batch);
                self.agenda.after(100_000, Happening::Retry { front_end: at, life, effect });
            }
            (Purpose::Begin(batch) | Purpose::Batch(batch), _) => {
                let effect = RetriedEffect::Write(batch);
                self.agenda.after(100_000, Happening::Retry { front_end: at, life, effect });
            }
            (Purpose::Part { group, key }, answer) => self.part_read(at, group, key, answer),
            (Purpose::DeletePart { group, numbers }, answer) => {
                self.part_deleted(at, group, &numbers, matches!(answer, Answer::Written));
            }
            _ => {}
        }
        self.carry_out(at);
    }

    pub(crate) fn saw_row(&mut self, at: usize, row: Option<OwnerRow>) {
        let now = self.now(at);
        let watch = self.front_ends[at].observation.see(row.as_ref(), now);
        if self.front_ends[at].owner.is_none() && watch == Watch::Free {
            self.front_ends[at].is_asking = true;
            self.read(at, Purpose::Directory(row), Partition::Segments);
        }
    }

    pub(crate) fn saw_directory(&mut self, at: usize, row: Option<OwnerRow>, rows: Rows) {
        let listed: Vec<SegmentRow> = rows
            .into_iter()
            .filter_map(|(key, (_, value))| match (key, value) {
                (Key::Segment(key), Some(Value::Segment { began_at_ms })) => {
                    Some(SegmentRow { key, began_at_ms })
                }
                _ => None,
            })
            .filter(|listed: &SegmentRow| listed.key >= listed_from(row.as_ref()))
            .collect();
        self.front_ends[at].is_asking = true;
        match tail_of(row.as_ref(), &listed) {
            Some(key) => self.read(at, Purpose::Tail(row, listed), Partition::Messages(key)),
            None => self.claim(at, row, listed, None),
        }
    }

    pub(crate) fn claim(
        &mut self,
        at: usize,
        row: Option<OwnerRow>,
        listed: Vec<SegmentRow>,
        last: Option<u64>,
    ) {
        let now = self.now(at);
        let mut take = take_over(row.as_ref(), &listed, last, 1_000, now.wall_ms);
        if !self.chaos.is_sealed {
            count_late_writes(&mut take);
        }
        self.next += 1;
        let holder = u128::from(self.next);
        let to = OwnerRow {
            epoch: take.epoch,
            holder,
            address: String::new(),
            held_until_ms: now.wall_ms as i64 + 6_000,
            sealed: take.sealed.clone(),
            sealed_to: take.sealed_to,
            oldest: listed_from(row.as_ref()),
            received: Vec::new(),
        };
        let from = row.map(|row| (row.epoch, row.holder, Some(row.held_until_ms)));
        self.front_ends[at].is_asking = true;
        self.front_ends[at].row = Some(to.clone());
        let asked_at = self.owners_now(at);
        self.transact(at, Purpose::Claim { asked_at, take, holder }, from, to);
    }

    pub(crate) fn discarded(&mut self, at: usize, is_gone: bool) {
        let now = self.owners_now(at);
        self.front_ends[at].owner.as_mut().unwrap().discarded(is_gone, now);
    }

    pub(crate) fn own(&mut self, at: usize, asked_at: Now, take: TakeOver, holder: u128) {
        let now = self.owners_now(at);
        let owner = Owner::new((Uuid::nil(), Uuid::nil()), take, SETTINGS, asked_at.steady_ms, now);
        self.outcome.take_overs += 1;
        let one = &mut self.front_ends[at];
        one.holder = holder;
        one.owner = Some(owner);
    }
}

/// Has readers count what an earlier owner writes beyond its seal.
fn count_late_writes(take: &mut TakeOver) {
    const LATE: u64 = 30;
    let Some(last) = take.ranges.last_mut() else { return };
    let Some(seal) = take.sealed.get_mut(&last.key.epoch) else { return };
    last.last += LATE;
    *seal += LATE;
    take.sealed_to = take.sealed_to.max(*seal);
}
