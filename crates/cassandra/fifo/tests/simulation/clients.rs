//! Clients: what they ask for, and what they hear.

use std::sync::Arc;

use bytes::Bytes;
use quelea_cassandra_fifo::{Arrival, CallId, Content, ReceiveCall, SendCall, deduplication_key};
use quelea_sqs_protocol::{ReceiptOutcome, Received};
use uuid::Uuid;

use crate::history::Event;

use crate::fifo_simulation::FifoSimulation;
use crate::happenings::*;

impl FifoSimulation {
    pub(crate) fn next_wish(&mut self, client: usize) {
        let is_active = self.agenda.now_us() < ACTIVE_US;
        let one = &mut self.clients[client];
        if client < PRODUCERS {
            if !is_active {
                return;
            }
            one.sent += 1;
            let group = format!("g{}", self.rng.u32(..GROUPS));
            let id = format!("p{client}-{}", one.sent);
            self.history.add(Event::SendBegan { id: id.clone() });
            self.clients[client].wish = Some(ClientCommand::Send { group, id });
        } else {
            one.wish = Some(ClientCommand::Receive { max: self.rng.usize(1..6) });
        }
        self.begin_call(client);
    }

    pub(crate) fn begin_call(&mut self, client: usize) {
        self.next += 1;
        let call = self.next;
        if self.rng.f64() < 0.3 {
            self.clients[client].front_end = self.rng.usize(..FRONT_ENDS);
        }
        let front_end = self.clients[client].front_end;
        self.clients[client].call = call;
        let delay_us = self.rng.u64(100..2_000);
        self.agenda.after(delay_us, Happening::Call { client, call, front_end });
        self.agenda.after(CALL_TIMEOUT_US, Happening::CallTimeout { client, call });
    }

    pub(crate) fn begin_delete(
        &mut self,
        client: usize,
        delivery: Vec<u8>,
        number: u64,
        tries: u32,
    ) {
        self.next += 1;
        let call = self.next;
        let front_end = self.rng.usize(..FRONT_ENDS);
        self.history.add(Event::DeleteBegan { number });
        let wish = ClientCommand::Delete { delivery: delivery.clone(), number };
        self.clients[client].deleting.insert(call, wish);
        self.agenda.after(500, Happening::Call { client, call, front_end });
        self.agenda.after(CALL_TIMEOUT_US, Happening::CallTimeout { client, call });
        if tries > 0 {
            // As a client does that heard nothing.
            let again = Happening::Delete { client, delivery, number, tries: tries - 1 };
            self.agenda.after(CALL_TIMEOUT_US, again);
        }
    }

    pub(crate) fn call(&mut self, client: usize, call: u64, front_end: usize) {
        let one = &self.clients[client];
        let wish = match one.deleting.get(&call) {
            Some(wish) => wish.clone(),
            None if one.call == call => match &one.wish {
                Some(wish) => wish.clone(),
                None => return,
            },
            None => return,
        };
        // As forwarding does: it goes to whoever believes to be the owner, be it a front-end that was paused.
        let at = match self.front_ends[front_end].owner {
            Some(_) => front_end,
            None => {
                let owner = (0..FRONT_ENDS).find(|at| self.front_ends[*at].owner.is_some());
                match owner {
                    Some(at) if self.rng.f64() < 0.8 => at,
                    // It looks again until its caller has waited for too long.
                    _ => {
                        return self
                            .agenda
                            .after(100_000, Happening::Call { client, call, front_end });
                    }
                }
            }
        };
        if at != front_end {
            self.agenda.after(500, Happening::Call { client, call, front_end: at });
            return;
        }
        let (now, unpaused) = (self.owners_now(at), self.now(at));
        let owner = self.front_ends[at].owner.as_mut().unwrap();
        if !owner.is_serving() {
            return self.agenda.after(20_000, Happening::Call { client, call, front_end });
        }
        self.next += 1;
        let id = CallId(self.next);
        self.front_ends[at].calls.insert(id, (client, call));
        let owner = self.front_ends[at].owner.as_mut().unwrap();
        match wish {
            ClientCommand::Send { group, id: name } => {
                let random = self.rng.u64(..);
                let content = Content {
                    body: Bytes::from(name.clone()),
                    group_id: group,
                    deduplication_id: Some(name.clone()),
                    ..Content::default()
                };
                let arrival = Arrival {
                    id: Uuid::from_u128(u128::from(unpaused.wall_ms) << 80 | u128::from(random)),
                    content: Arc::new(content),
                    visible_at_ms: 0,
                    ttl_s: 86_400,
                    deduplication: Some(deduplication_key(&name, None)),
                };
                owner.send(id, SendCall { messages: vec![arrival] }, now);
            }
            ClientCommand::Receive { max } => {
                let receive = ReceiveCall {
                    max,
                    visibility_timeout_ms: self.rng.u64(3_000..12_000),
                    wait_ms: self.rng.u64(..1_500),
                    attempt_id: None,
                };
                owner.receive(id, receive, now);
            }
            ClientCommand::Delete { delivery, .. } => owner.delete(id, &[delivery], now),
        }
        self.carry_out(at);
    }

    pub(crate) fn sent(&mut self, client: usize, call: u64, number: Option<String>) {
        if self.clients[client].call != call {
            return;
        }
        let Some(ClientCommand::Send { group, id }) = self.clients[client].wish.clone() else {
            return;
        };
        let number = number.unwrap().parse().unwrap();
        self.history.add(Event::Sent { id, group, number });
        self.outcome.sent += 1;
        self.clients[client].wish = None;
        self.clients[client].call = 0;
        let pause_us = self.rng.u64(1_000..800_000);
        self.agenda.after(pause_us, Happening::Next(client));
    }

    pub(crate) fn received(&mut self, at: usize, call: CallId, received: Vec<Received>) {
        let now = self.owners_now(at);
        let waiting = self.front_ends[at].calls.remove(&call);
        let waits = |(client, call): &(usize, u64)| self.clients[*client].call == *call;
        let Some((client, _)) = waiting.filter(waits) else {
            self.front_ends[at].owner.as_mut().unwrap().undo(&received, now);
            return;
        };
        let messages = received.iter().map(|one| {
            let number = one.sequence_number.as_ref().unwrap().parse().unwrap();
            (one.group_id.clone().unwrap(), number, one.deduplication_id.clone().unwrap())
        });
        let messages: Vec<(String, u64, String)> = messages.collect();
        self.outcome.received += messages.len() as u64;
        let mut delay_us = 0;
        let is_calm = self.agenda.now_us() > ACTIVE_US || !self.chaos.pauses;
        for (one, (_, number, _)) in received.iter().zip(&messages) {
            delay_us += self.rng.u64(1_000..300_000);
            if is_calm || self.rng.f64() < 0.9 {
                let (delivery, number) = (one.delivery.clone(), *number);
                let tries = self.rng.u32(..2);
                self.agenda.after(delay_us, Happening::Delete { client, delivery, number, tries });
            }
        }
        if !messages.is_empty() {
            self.history.add(Event::Received(messages));
        }
        self.clients[client].call = 0;
        self.agenda.after(delay_us + self.rng.u64(1_000..200_000), Happening::Next(client));
    }

    pub(crate) fn settled(&mut self, client: usize, call: u64, outcome: ReceiptOutcome) {
        if let Some(ClientCommand::Delete { number, .. }) =
            self.clients[client].deleting.remove(&call)
            && outcome == ReceiptOutcome::Done
        {
            self.history.add(Event::Deleted { number });
        }
    }

    pub(crate) fn call_failed(&mut self, client: usize, call: u64) {
        if self.clients[client].deleting.remove(&call).is_some() {
            return;
        }
        if self.clients[client].call != call {
            return;
        }
        self.clients[client].call = 0;
        match self.clients[client].wish {
            // It tries until it is told that it is done.
            Some(ClientCommand::Send { .. }) => {
                self.clients[client].front_end = self.rng.usize(..FRONT_ENDS);
                self.next += 1;
                let retry = self.next;
                self.clients[client].call = retry;
                let front_end = self.clients[client].front_end;
                self.agenda.after(
                    self.rng.u64(50_000..400_000),
                    Happening::Call { client, call: retry, front_end },
                );
                self.agenda.after(CALL_TIMEOUT_US, Happening::CallTimeout { client, call: retry });
            }
            _ => {
                self.clients[client].front_end = self.rng.usize(..FRONT_ENDS);
                self.agenda.after(self.rng.u64(50_000..400_000), Happening::Next(client));
            }
        }
    }
}
