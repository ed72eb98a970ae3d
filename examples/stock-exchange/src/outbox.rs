//! What a program has published and the broker has not confirmed: it is published again when the connection breaks.

use std::collections::VecDeque;

use crate::connection::{Connection, Route};
use crate::messages::Message;

/// Messages in the order in which they were published. Without confirms nothing is kept.
#[derive(Debug)]
pub struct Outbox {
    keeps: bool,
    unconfirmed: VecDeque<Published>,
    /// The connection's number of the first of them.
    first: u64,
    /// How many were published by each route, each once.
    counts: [u32; Route::ALL.len()],
}

#[derive(Debug)]
struct Published {
    route: Route,
    message: Message,
    /// Its place among those of its route: the same when it is published again.
    number: u32,
    is_confirmed: bool,
}

impl Outbox {
    /// Returns an empty outbox that keeps messages, or not.
    #[must_use]
    pub const fn new(keeps: bool) -> Self {
        Self { keeps, unconfirmed: VecDeque::new(), first: 1, counts: [0; Route::ALL.len()] }
    }

    /// Returns whether it keeps messages.
    #[must_use]
    pub const fn keeps(&self) -> bool {
        self.keeps
    }

    /// Publishes a message.
    pub fn publish(&mut self, connection: &mut Connection, route: Route, message: Message) {
        let count = &mut self.counts[route as usize];
        let number = *count;
        *count += 1;
        connection.publish(route, &message, number);
        if self.keeps {
            self.unconfirmed.push_back(Published { route, message, number, is_confirmed: false });
        }
    }

    /// The broker has message `tag`, with `multiple` all up to it.
    pub fn confirm(&mut self, tag: u64, multiple: bool) {
        let Some(at) = tag.checked_sub(self.first).and_then(|at| usize::try_from(at).ok()) else {
            return;
        };
        let from = if multiple { 0 } else { at };
        for published in self.unconfirmed.iter_mut().take(at + 1).skip(from) {
            published.is_confirmed = true;
        }
        while self.unconfirmed.front().is_some_and(|published| published.is_confirmed) {
            self.unconfirmed.pop_front();
            self.first += 1;
        }
    }

    /// Publishes all of it again, over a new connection.
    pub fn publish_again(&mut self, connection: &mut Connection) {
        self.unconfirmed.retain(|published| !published.is_confirmed);
        self.first = 1;
        for Published { route, message, number, .. } in &self.unconfirmed {
            connection.publish(*route, message, *number);
        }
    }

    /// Returns the number of the first message that is not confirmed.
    #[must_use]
    pub const fn first_unconfirmed(&self) -> u64 {
        self.first
    }

    /// Returns the number of the next message.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.first + self.unconfirmed.len() as u64
    }

    /// Returns whether all messages are confirmed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unconfirmed.is_empty()
    }
}
