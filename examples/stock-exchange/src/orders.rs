//! Random orders, the same for the same seed: so the book that they lead to can be computed without a broker.

use crate::answers::{AnsweringBook, Tally};
use crate::book::Rule;
use crate::messages::{MESSAGE_BYTES_MAX, Order, Side};

/// The lowest price, in ticks.
const PRICE_MIN: u16 = 450;
/// The highest.
const PRICE_MAX: u16 = 550;
/// The largest order, in lots.
const QUANTITY_MAX: u16 = 10;

/// Orders without end; a run takes as many as it wants.
#[derive(Debug)]
pub struct Orders {
    rng: fastrand::Rng,
    next: u32,
}

impl Orders {
    /// Returns the orders of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed), next: 0 }
    }
}

impl Iterator for Orders {
    type Item = Order;

    fn next(&mut self) -> Option<Order> {
        let id = self.next;
        self.next = id.checked_add(1)?;
        Some(Order {
            id,
            side: if self.rng.bool() { Side::Buy } else { Side::Sell },
            price: self.rng.u16(PRICE_MIN..=PRICE_MAX),
            quantity: self.rng.u16(1..=QUANTITY_MAX),
        })
    }
}

/// What orders lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Of the book.
    pub fingerprint: u64,
    /// All answers.
    pub answers: Tally,
}

/// Returns what the first `count` orders of a seed lead to.
#[must_use]
pub fn expected(seed: u64, count: u32, rule: Rule) -> Expected {
    let (mut book, mut answers) = (AnsweringBook::new(rule), Tally::default());
    let mut bytes = Vec::with_capacity(MESSAGE_BYTES_MAX);
    for order in Orders::new(seed).take(count as usize) {
        book.take(&order, |answer| {
            bytes.clear();
            answer.encode(&mut bytes);
            answers.add(&bytes);
        });
    }
    Expected { fingerprint: book.book().fingerprint(), answers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_orders_again() {
        let some = |seed| Orders::new(seed).take(100).collect::<Vec<_>>();
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
        assert_eq!(some(3).last().unwrap().id, 99);
    }

    #[test]
    fn book_and_answers_are_known_before_the_orders_are_sent() {
        let of = |count| expected(5, count, Rule::PriceTime);
        assert_eq!(of(1_000), of(1_000));
        assert_ne!(of(1_000).fingerprint, of(1_001).fingerprint);
        assert_ne!(of(1_000).answers, of(1_001).answers);
        assert_ne!(of(1_000).answers, expected(6, 1_000, Rule::PriceTime).answers);
    }
}
