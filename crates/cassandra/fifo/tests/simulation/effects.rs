//! What an owner wants done.

use std::collections::BTreeMap;
use std::sync::Arc;

use quelea_cassandra_fifo::{
    Batch, Content, Effect, Noted, Now, Owner, Renewal, Row, RowKey, SegmentKey,
};
use quelea_sqs_protocol::Fault;

use crate::front_end::{Group, Purpose};
use crate::replicas::{Key, Mutation, Partition, Rows, Value};

use crate::fifo_simulation::FifoSimulation;
use crate::happenings::*;

impl FifoSimulation {
    /// Carries out what the owner wants done.
    pub(crate) fn carry_out(&mut self, at: usize) {
        while let Some(effect) = self.front_ends[at].owner.as_mut().and_then(Owner::poll_effect) {
            match effect {
                Effect::Write(batch) => self.begin_batch(at, batch),
                Effect::Discard(batch) => self.begin_discard(at, batch),
                Effect::Load(wanted) => self.begin_load(at, wanted),
                Effect::ReadDeduplications(wanted) => self.begin_noted(at, wanted),
                Effect::ReadContents { id, rows, .. } => self.begin_contents(at, id, rows),
                Effect::Delete { id, rows } => self.begin_deletes(at, id, rows),
                Effect::Renew(renewal) => self.renew(at, renewal, false),
                Effect::Release(renewal) => {
                    self.renew(at, renewal, true);
                }
                Effect::Sent(call, outcomes) => {
                    if let Some((client, call)) = self.front_ends[at].calls.remove(&call) {
                        match outcomes.into_iter().next().unwrap() {
                            Ok(sent) => self.sent(client, call, sent.sequence_number),
                            Err(_) => {
                                self.outcome.refused += 1;
                                self.call_failed(client, call);
                            }
                        }
                    }
                }
                Effect::Received(call, received) => self.received(at, call, received),
                Effect::Settled(call, outcomes) => {
                    if let Some((client, call)) = self.front_ends[at].calls.remove(&call) {
                        self.settled(client, call, outcomes[0]);
                    }
                }
                Effect::Failed(call, _) | Effect::NotOwner(call) => {
                    if let Some((client, call)) = self.front_ends[at].calls.remove(&call) {
                        self.call_failed(client, call);
                    }
                }
                Effect::Move { .. }
                | Effect::MoveOut { .. }
                | Effect::MovedOut(..)
                | Effect::Drop(_) => {}
            }
        }
        if self.front_ends[at].owner.as_ref().is_some_and(Owner::has_ended) {
            let one = &mut self.front_ends[at];
            one.owner = None;
            one.life += 1;
            one.groups.clear();
            one.is_asking = false;
        }
    }

    pub(crate) fn renew(&mut self, at: usize, renewal: Renewal, is_release: bool) {
        let asked_at = self.owners_now(at);
        let wall_ms = self.now(at).wall_ms as i64;
        let mut row = self.front_ends[at].row.clone().unwrap();
        (row.sealed, row.sealed_to) = (renewal.sealed, renewal.sealed_to);
        row.oldest = renewal.oldest;
        row.received = renewal.received;
        row.held_until_ms = wall_ms + 6_000;
        let from = Some((row.epoch, row.holder, None));
        if is_release {
            self.next += 1;
            (row.held_until_ms, row.holder) = (0, u128::from(self.next));
        }
        let purpose = if is_release { Purpose::Release } else { Purpose::Renew { asked_at } };
        self.transact(at, purpose, from, row);
    }

    pub(crate) fn begin_batch(&mut self, at: usize, batch: Arc<Batch>) {
        if self.chaos.refusals && self.agenda.now_us() < ACTIVE_US && self.rng.f64() < 0.05 {
            let now = self.owners_now(at);
            let fault = Fault::Invalid("refused".to_owned());
            return self.front_ends[at].owner.as_mut().unwrap().refused(fault, now);
        }
        let Some(began_at_ms) = batch.begins_at_ms else { return self.write_batch(at, batch) };
        let cell = (batch.segment.first, Some(Value::Segment { began_at_ms }));
        let cells = vec![(Key::Segment(batch.segment), cell)];
        let mutation = Mutation { partition: Partition::Segments, cells };
        self.write(at, Purpose::Begin(batch), mutation);
    }

    pub(crate) fn write_batch(&mut self, at: usize, batch: Arc<Batch>) {
        let mut cells = vec![(Key::Last, (batch.last(), Some(Value::Last(batch.last()))))];
        for (number, arrival) in &batch.messages {
            let row = Row {
                number: *number,
                id: arrival.id,
                group_id: arrival.content.group_id.clone(),
                bytes: arrival.content.bytes(),
                visible_at_ms: arrival.visible_at_ms,
            };
            let id = arrival.content.deduplication_id.clone().unwrap();
            cells.push((Key::Message(*number), (*number, Some(Value::Message(row, id)))));
            let noted = Noted {
                key: arrival.deduplication.unwrap(),
                number: *number,
                id: arrival.id,
                sent_at_ms: quelea_cassandra_fifo::sent_at_ms(arrival.id),
            };
            cells.push((Key::Noted(*number), (*number, Some(Value::Noted(noted)))));
        }
        let partition = Partition::Messages(batch.segment);
        self.write(at, Purpose::Batch(batch), Mutation { partition, cells });
    }

    pub(crate) fn begin_discard(&mut self, at: usize, batch: Arc<Batch>) {
        if !self.chaos.discards || self.rng.f64() < 0.1 {
            return self.discarded(at, !self.chaos.discards);
        }
        let gone = |key: fn(u64) -> Key| {
            batch.messages.iter().map(move |(number, _)| (key(*number), (number + 1, None)))
        };
        let cells = gone(Key::Message).chain(gone(Key::Noted)).collect();
        let partition = Partition::Messages(batch.segment);
        self.write(at, Purpose::Discard(batch.clone()), Mutation { partition, cells });
    }

    pub(crate) fn group(&mut self, at: usize, group: Group) -> u64 {
        self.next += 1;
        self.front_ends[at].groups.insert(self.next, group);
        self.next
    }

    pub(crate) fn begin_load(&mut self, at: usize, wanted: Vec<(SegmentKey, u64, u64)>) {
        let keys: Vec<SegmentKey> = wanted.iter().map(|(key, ..)| *key).collect();
        let open = keys.len();
        let group = self.group(at, Group::Load { wanted, rows: Vec::new(), open });
        for key in keys {
            self.read(at, Purpose::Part { group, key }, Partition::Messages(key));
        }
    }

    pub(crate) fn begin_noted(&mut self, at: usize, wanted: Vec<(SegmentKey, u64)>) {
        let keys: Vec<SegmentKey> = wanted.iter().map(|(key, _)| *key).collect();
        let open = keys.len();
        let group = self.group(at, Group::Noted { wanted, rows: Vec::new(), open });
        for key in keys {
            self.read(at, Purpose::Part { group, key }, Partition::Messages(key));
        }
    }

    pub(crate) fn begin_contents(&mut self, at: usize, id: u64, rows: Vec<RowKey>) {
        let mut keys: Vec<SegmentKey> = rows.iter().map(|row| row.segment).collect();
        keys.dedup();
        let open = keys.len();
        let group =
            self.group(at, Group::Contents { id, rows, read: Vec::new(), open, is_failed: false });
        for key in keys {
            self.read(at, Purpose::Part { group, key }, Partition::Messages(key));
        }
    }

    pub(crate) fn begin_deletes(&mut self, at: usize, id: u64, rows: Vec<RowKey>) {
        let mut parts: BTreeMap<SegmentKey, Vec<u64>> = BTreeMap::new();
        rows.iter().for_each(|row| parts.entry(row.segment).or_default().push(row.number));
        let open = parts.len();
        let group = self.group(at, Group::Delete { id, rows, failed: Vec::new(), open });
        for (key, numbers) in parts {
            let cells = numbers.iter().map(|number| (Key::Message(*number), (number + 1, None)));
            let mutation = Mutation { partition: Partition::Messages(key), cells: cells.collect() };
            self.write(at, Purpose::DeletePart { group, numbers }, mutation);
        }
    }

    pub(crate) fn part_deleted(&mut self, at: usize, group: u64, numbers: &[u64], is_done: bool) {
        let now = self.owners_now(at);
        let one = &mut self.front_ends[at];
        let Some(Group::Delete { failed, open, .. }) = one.groups.get_mut(&group) else { return };
        if !is_done {
            failed.extend(numbers);
        }
        *open -= 1;
        if *open > 0 {
            return;
        }
        let Some(Group::Delete { id, rows, failed, .. }) = one.groups.remove(&group) else {
            return;
        };
        let outcomes: Vec<Result<(), Fault>> = rows
            .iter()
            .map(|row| match failed.contains(&row.number) {
                true => Err(Fault::Unavailable("late".to_owned())),
                false => Ok(()),
            })
            .collect();
        one.owner.as_mut().unwrap().deleted(id, &outcomes, now);
    }

    pub(crate) fn part_read(&mut self, at: usize, group: u64, key: SegmentKey, answer: Answer) {
        let (now, life) = (self.owners_now(at), self.front_ends[at].life);
        let one = &mut self.front_ends[at];
        let found = match answer {
            Answer::Read(rows) => Some(rows),
            _ => None,
        };
        let retried = match one.groups.get_mut(&group) {
            Some(Group::Load { rows, open, wanted }) => {
                *open -= 1;
                match found {
                    Some(found) => rows.push((key, found)),
                    None => *open = usize::MAX / 2,
                }
                (*open > usize::MAX / 4).then(|| RetriedEffect::Load(wanted.clone()))
            }
            Some(Group::Noted { rows, open, wanted }) => {
                *open -= 1;
                match found {
                    Some(found) => rows.push((key, found)),
                    None => *open = usize::MAX / 2,
                }
                (*open > usize::MAX / 4).then(|| RetriedEffect::Noted(wanted.clone()))
            }
            Some(Group::Contents { read, open, is_failed, .. }) => {
                *open -= 1;
                *is_failed |= found.is_none();
                read.extend(found.map(|found| (key, found)));
                None
            }
            _ => return,
        };
        if let Some(effect) = retried {
            one.groups.remove(&group);
            self.agenda.after(100_000, Happening::Retry { front_end: at, life, effect });
            return;
        }
        let is_over = matches!(
            one.groups.get(&group),
            Some(
                Group::Load { open: 0, .. }
                    | Group::Noted { open: 0, .. }
                    | Group::Contents { open: 0, .. }
            )
        );
        if !is_over {
            return;
        }
        if let Some(group) = one.groups.remove(&group) {
            give(one.owner.as_mut().unwrap(), group, now);
        }
    }
}

/// An owner gets what was read for it.
fn give(owner: &mut Owner, group: Group, now: Now) {
    match group {
        Group::Load { wanted, rows, .. } => {
            let to = wanted.last().map_or(0, |(_, _, to)| *to);
            let rows = of_each(rows, |value| match value {
                Value::Message(row, _) => Some(row),
                _ => None,
            });
            owner.loaded(rows, to, now);
        }
        Group::Noted { rows, .. } => {
            let noted = of_each(rows, |value| match value {
                Value::Noted(noted) => Some(noted),
                _ => None,
            });
            owner.deduplications_read(noted, now);
        }
        Group::Contents { id, rows, read, is_failed, .. } => {
            let read = of_each(read, |value| match value {
                Value::Message(row, id) => Some((row.number, (row, id))),
                _ => None,
            });
            let read: BTreeMap<SegmentKey, BTreeMap<u64, (Row, String)>> =
                read.into_iter().map(|(key, rows)| (key, rows.into_iter().collect())).collect();
            let content = |key: RowKey| {
                let (row, id) = read.get(&key.segment)?.get(&key.number)?;
                let (group_id, deduplication_id) = (row.group_id.clone(), Some(id.clone()));
                Some(Content { group_id, deduplication_id, ..Content::default() })
            };
            let contents = match is_failed {
                true => Err(Fault::Unavailable("late".to_owned())),
                false => Ok(rows.iter().map(|row| content(*row)).collect()),
            };
            owner.contents_read(id, contents, now);
        }
        Group::Delete { .. } => {}
    }
}

pub(crate) fn of_each<T>(
    read: Vec<(SegmentKey, Rows)>,
    wanted: impl Fn(Value) -> Option<T>,
) -> Vec<(SegmentKey, Vec<T>)> {
    let of_one = |rows: Rows| rows.into_values().filter_map(|(_, value)| wanted(value?)).collect();
    read.into_iter().map(|(key, rows)| (key, of_one(rows))).collect()
}
