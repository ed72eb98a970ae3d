//! One run: the agenda, the replicas, front-ends and clients.

use std::collections::BTreeMap;

use quelea_cassandra_fifo::Now;
use quelea_testkit::{Agenda, Seed};

use crate::front_end::FrontEnd;
use crate::history::History;
use crate::replicas::{Key, Replicas};

use crate::happenings::*;

pub(crate) struct FifoSimulation {
    pub(crate) chaos: Chaos,
    pub(crate) rng: fastrand::Rng,
    pub(crate) agenda: Agenda<Happening>,
    pub(crate) replicas: Replicas,
    pub(crate) front_ends: Vec<FrontEnd>,
    pub(crate) deferred: Vec<Vec<Happening>>,
    pub(crate) requests: BTreeMap<u64, Request>,
    pub(crate) clients: Vec<Client>,
    pub(crate) next: u64,
    pub(crate) history: History,
    pub(crate) outcome: Outcome,
}

impl FifoSimulation {
    pub(crate) fn new(seed: Seed, chaos: Chaos) -> Self {
        let mut rng = seed.rng("fifo");
        let mut agenda = Agenda::new();
        let mut front_ends: Vec<FrontEnd> = Vec::new();
        for at in 0..FRONT_ENDS {
            front_ends.push(FrontEnd {
                wall_skew_ms: rng.i64(-400..400),
                steady_offset_ms: rng.u64(..1_000_000),
                ..FrontEnd::default()
            });
            agenda.at(rng.u64(..TICK_US), Happening::Tick(at));
        }
        let mut clients = Vec::new();
        for at in 0..PRODUCERS + CONSUMERS {
            clients.push(Client::default());
            agenda.at(rng.u64(..500_000), Happening::Next(at));
        }
        let mut at_us = 1_000_000;
        while at_us < ACTIVE_US && (chaos.pauses || chaos.crashes) {
            at_us += rng.u64(500_000..8_000_000);
            let front_end = rng.usize(..FRONT_ENDS);
            if chaos.crashes && rng.bool() {
                agenda.at(at_us, Happening::Crash(front_end));
            } else if chaos.pauses {
                agenda.at(at_us, Happening::Pause(front_end));
                agenda.at(at_us + rng.u64(100_000..20_000_000), Happening::Wake(front_end));
            }
        }
        let deferred = vec![Vec::new(); FRONT_ENDS];
        Self {
            chaos,
            rng,
            agenda,
            replicas: Replicas::default(),
            front_ends,
            deferred,
            requests: BTreeMap::new(),
            clients,
            next: 0,
            history: History::default(),
            outcome: Outcome::default(),
        }
    }

    pub(crate) fn play(mut self) -> Outcome {
        while let Some(happening) = self.agenda.next_until(END_US) {
            self.happen(happening);
        }
        self.outcome.faults.extend(self.history.faults());
        self.outcome
    }

    pub(crate) fn now(&self, front_end: usize) -> Now {
        let ms = self.agenda.now_us() / 1_000;
        let one = &self.front_ends[front_end];
        Now {
            wall_ms: (START_MS + ms).saturating_add_signed(one.wall_skew_ms),
            steady_ms: ms + one.steady_offset_ms,
        }
    }

    /// Returns what the owner believes the time to be: without its fence its lease never ends.
    pub(crate) fn owners_now(&self, front_end: usize) -> Now {
        let now = self.now(front_end);
        if self.chaos.is_fenced { now } else { Now { steady_ms: 0, ..now } }
    }

    /// Returns the front-end whose happening it is, if it is a front-end's own.
    pub(crate) fn front_end_of(&self, happening: &Happening) -> Option<usize> {
        match happening {
            Happening::Tick(at)
            | Happening::Retry { front_end: at, .. }
            | Happening::Call { front_end: at, .. } => Some(*at),
            Happening::Answer { request, .. } => {
                self.requests.get(request).map(|request| request.front_end)
            }
            _ => None,
        }
    }

    pub(crate) fn happen(&mut self, happening: Happening) {
        if let Some(at) = self.front_end_of(&happening)
            && self.front_ends[at].is_paused
        {
            self.deferred[at].push(happening);
            return;
        }
        match happening {
            Happening::Tick(at) => self.tick(at),
            Happening::Pause(at) => self.front_ends[at].is_paused = true,
            Happening::Wake(at) => {
                self.front_ends[at].is_paused = false;
                for deferred in std::mem::take(&mut self.deferred[at]) {
                    self.agenda.after(0, deferred);
                }
            }
            Happening::Crash(at) => self.crash(at),
            Happening::Apply { request, replica, mutation, epoch } => {
                let owners = self.replicas.owner.as_ref().map_or(0, |row| row.epoch);
                let is_batch = mutation.cells.iter().any(|(key, _)| *key == Key::Last);
                self.outcome.late_writes += u64::from(is_batch && epoch < owners);
                self.replicas.apply(replica, &mutation);
                if let Some(request_) = self.requests.get_mut(&request) {
                    request_.acknowledged += 1;
                    if request_.acknowledged == 2 {
                        self.answer(request, Answer::Written);
                    }
                }
            }
            Happening::Snapshot { request, replica, partition } => {
                let rows = self.replicas.snapshot(replica, partition);
                let Some(request_) = self.requests.get_mut(&request) else { return };
                request_.said.push((replica, rows));
                if request_.said.len() == 2 {
                    let said = std::mem::take(&mut request_.said);
                    let rows = self.replicas.repair(partition, said.try_into().unwrap());
                    self.answer(request, Answer::Read(rows));
                }
            }
            Happening::ReadOwner { request } => {
                let row = self.replicas.owner.clone();
                self.answer(request, Answer::Row(row));
            }
            Happening::ChangeOwner { request, from, to, is_heard } => {
                self.change_owner(request, from, to, is_heard);
            }
            Happening::Timeout { request } => {
                if self.requests.get(&request).is_some_and(|one| !one.is_done) {
                    self.requests.get_mut(&request).unwrap().is_done = true;
                    self.agenda.after(0, Happening::Answer { request, answer: Answer::Failed });
                }
            }
            Happening::Answer { request, answer } => self.answered(request, answer),
            Happening::Retry { front_end, life, effect } => {
                if self.front_ends[front_end].life == life {
                    match effect {
                        RetriedEffect::Write(batch) => self.begin_batch(front_end, batch),
                        RetriedEffect::Discard(batch) => self.begin_discard(front_end, batch),
                        RetriedEffect::Load(wanted) => self.begin_load(front_end, wanted),
                        RetriedEffect::Noted(wanted) => self.begin_noted(front_end, wanted),
                    }
                }
            }
            Happening::Call { client, call, front_end } => self.call(client, call, front_end),
            Happening::CallTimeout { client, call } => self.call_failed(client, call),
            Happening::Next(client) => self.next_wish(client),
            Happening::Delete { client, delivery, number, tries } => {
                self.begin_delete(client, delivery, number, tries);
            }
        }
    }
}
