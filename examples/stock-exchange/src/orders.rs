//! Random orders, the same for the same seed: so the book that they lead to can be computed without a broker.

use crate::book::{Book, Rule};
use crate::messages::{Order, Side};

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
    /// The orders of a seed.
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

/// The fingerprint of the book after the first `count` orders of a seed.
#[must_use]
pub fn expected_fingerprint(seed: u64, count: u32, rule: Rule) -> u64 {
    let mut book = Book::new(rule);
    for order in Orders::new(seed).take(count as usize) {
        book.take(&order, |_| ());
    }
    book.fingerprint()
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
    fn the_book_is_known_before_the_orders_are_sent() {
        let of = |count| expected_fingerprint(5, count, Rule::PriceTime);
        assert_eq!(of(1_000), of(1_000));
        assert_ne!(of(1_000), of(1_001));
    }
}
