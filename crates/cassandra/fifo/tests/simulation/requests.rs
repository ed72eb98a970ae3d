//! Requests to Cassandra: when they come to replicas, and when their answers come.

use std::sync::Arc;

use quelea_cassandra_fifo::{Owner, OwnerRow};

use crate::front_end::Purpose;
use crate::replicas::{Mutation, Partition, REPLICAS};

use crate::fifo_simulation::FifoSimulation;
use crate::happenings::*;

impl FifoSimulation {
    pub(crate) fn answer(&mut self, request: u64, answer: Answer) {
        let one = self.requests.get_mut(&request).unwrap();
        if one.is_done || (self.chaos.lost_answers && self.rng.f64() < 0.02) {
            return;
        }
        one.is_done = true;
        let delay_us = self.rng.u64(100..3_000);
        self.agenda.after(delay_us, Happening::Answer { request, answer });
    }

    pub(crate) fn request(&mut self, front_end: usize, purpose: Purpose) -> u64 {
        self.next += 1;
        let life = self.front_ends[front_end].life;
        let one =
            Request { front_end, life, purpose, acknowledged: 0, said: Vec::new(), is_done: false };
        self.requests.insert(self.next, one);
        self.agenda.after(TIMEOUT_US, Happening::Timeout { request: self.next });
        self.next
    }

    pub(crate) fn write(&mut self, front_end: usize, purpose: Purpose, mutation: Mutation) {
        let request = self.request(front_end, purpose);
        let mutation = Arc::new(mutation);
        let epoch = self.front_ends[front_end].owner.as_ref().map_or(0, Owner::epoch);
        for replica in 0..REPLICAS {
            let delay_us = match self.rng.f64() {
                late if self.chaos.late_writes && late < 0.05 => self.rng.u64(100_000..30_000_000),
                _ => self.rng.u64(100..5_000),
            };
            let mutation = mutation.clone();
            self.agenda.after(delay_us, Happening::Apply { request, replica, mutation, epoch });
        }
    }

    pub(crate) fn read(&mut self, front_end: usize, purpose: Purpose, partition: Partition) {
        let request = self.request(front_end, purpose);
        let without = self.rng.usize(..REPLICAS);
        for replica in (0..REPLICAS).filter(|replica| *replica != without) {
            let delay_us = self.rng.u64(100..5_000);
            self.agenda.after(delay_us, Happening::Snapshot { request, replica, partition });
        }
    }

    pub(crate) fn read_owner(&mut self, front_end: usize) {
        let request = self.request(front_end, Purpose::Row);
        let delay_us = self.rng.u64(100..5_000);
        self.agenda.after(delay_us, Happening::ReadOwner { request });
    }

    pub(crate) fn transact(
        &mut self,
        front_end: usize,
        purpose: Purpose,
        from: Option<(u64, u128, Option<i64>)>,
        to: OwnerRow,
    ) {
        let request = self.request(front_end, purpose);
        let (is_lost, is_heard) = match self.rng.f64() {
            bad if self.chaos.lost_answers && bad < 0.05 => (true, false),
            bad if self.chaos.lost_answers && bad < 0.15 => (false, false),
            _ => (false, true),
        };
        let slow = self.chaos.late_writes && self.rng.f64() < 0.03;
        let delay_us = if slow { self.rng.u64(..6_000_000) } else { self.rng.u64(500..20_000) };
        if !is_lost {
            self.agenda.after(delay_us, Happening::ChangeOwner { request, from, to, is_heard });
        }
    }

    pub(crate) fn change_owner(
        &mut self,
        request: u64,
        from: Option<(u64, u128, Option<i64>)>,
        to: OwnerRow,
        is_heard: bool,
    ) {
        let row = self.replicas.owner.as_ref();
        let applies = match (row, from) {
            (None, None) => true,
            (Some(row), Some((epoch, holder, held_until_ms))) => {
                (row.epoch, row.holder) == (epoch, holder)
                    && held_until_ms.is_none_or(|held_until_ms| row.held_until_ms == held_until_ms)
            }
            _ => false,
        };
        if applies {
            self.outcome.releases += u64::from(to.held_until_ms == 0);
            if row.is_some_and(|row| row.held_until_ms == 0 && row.epoch == to.epoch) {
                let why = format!("the owner of epoch {} came back after it had let go", to.epoch);
                self.outcome.faults.push(why);
            }
            self.replicas.owner = Some(to);
        }
        if is_heard {
            self.answer(request, Answer::Applied(applies));
        }
    }
}
