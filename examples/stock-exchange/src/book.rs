//! The order book: what rests in it, and who trades with whom.

use std::collections::{BTreeMap, VecDeque};

use crate::messages::{Order, Side};

/// Which orders trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Rule {
    /// Those of the same price (the paper's rule, §5.1).
    Exact,
    /// Those whose prices cross: the best price first, and of one price the oldest, as in a real book.
    PriceTime,
}

/// A trade of an order with one that rested in the book, at the price of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The order that rested.
    pub resting: u32,
    /// At this price.
    pub price: u16,
    /// So many lots.
    pub quantity: u16,
}

/// An order that rests, with the lots that are left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resting {
    id: u32,
    quantity: u16,
}

type Level = BTreeMap<u16, VecDeque<Resting>>;

/// A book of one stock.
#[derive(Debug)]
pub struct Book {
    rule: Rule,
    bids: Level,
    asks: Level,
}

impl Book {
    /// Returns an empty book.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self { rule, bids: BTreeMap::new(), asks: BTreeMap::new() }
    }

    /// Takes an order: `fill` is called for each trade, and what is left of it rests.
    pub fn take(&mut self, order: &Order, mut fill: impl FnMut(Fill)) {
        let mut left = order.quantity;
        while left > 0
            && let Some(price) = self.matching(order)
        {
            let others = self.others(order.side);
            let Some(queue) = others.get_mut(&price) else { break };
            let Some(first) = queue.front_mut() else { break };
            let quantity = left.min(first.quantity);
            fill(Fill { resting: first.id, price, quantity });
            left -= quantity;
            first.quantity -= quantity;
            if first.quantity == 0 {
                queue.pop_front();
            }
            if queue.is_empty() {
                others.remove(&price);
            }
        }
        if left > 0 {
            let own = match order.side {
                Side::Buy => &mut self.bids,
                Side::Sell => &mut self.asks,
            };
            own.entry(order.price).or_default().push_back(Resting { id: order.id, quantity: left });
        }
    }

    /// Returns the highest bid and the lowest ask; 0 where there is none.
    #[must_use]
    pub fn quote(&self) -> (u16, u16) {
        let bid = self.bids.last_key_value().map_or(0, |(price, _)| *price);
        let ask = self.asks.first_key_value().map_or(0, |(price, _)| *price);
        (bid, ask)
    }

    /// Returns the best `count` prices of each side with the lots that rest there: bids downwards,
    /// asks upwards.
    #[must_use]
    pub fn depth(&self, count: usize) -> [Vec<(u16, u64)>; 2] {
        let lots = |(price, queue): (&u16, &VecDeque<Resting>)| {
            (*price, queue.iter().map(|one| u64::from(one.quantity)).sum())
        };
        let bids = self.bids.iter().rev().take(count).map(lots).collect();
        [bids, self.asks.iter().take(count).map(lots).collect()]
    }

    /// Returns a number that two books share only if the same orders rest in them, in the same
    /// order.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut sum = Fnv::new();
        for (side, level) in [(0, &self.bids), (1, &self.asks)] {
            for (price, queue) in level {
                for one in queue {
                    sum.add(side);
                    sum.add(u64::from(*price));
                    sum.add(u64::from(one.id));
                    sum.add(u64::from(one.quantity));
                }
            }
        }
        sum.0
    }

    fn others(&mut self, side: Side) -> &mut Level {
        match side {
            Side::Buy => &mut self.asks,
            Side::Sell => &mut self.bids,
        }
    }

    /// Returns the price at which an order trades next.
    fn matching(&self, order: &Order) -> Option<u16> {
        match (self.rule, order.side) {
            (Rule::Exact, Side::Buy) => self.asks.get_key_value(&order.price),
            (Rule::Exact, Side::Sell) => self.bids.get_key_value(&order.price),
            (Rule::PriceTime, Side::Buy) => {
                self.asks.first_key_value().filter(|(price, _)| **price <= order.price)
            }
            (Rule::PriceTime, Side::Sell) => {
                self.bids.last_key_value().filter(|(price, _)| **price >= order.price)
            }
        }
        .map(|(price, _)| *price)
    }
}

/// FNV-1a, of 64 bits.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    fn add(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same book as one list that is searched from end to end.
    #[derive(Default)]
    struct Model(Vec<Order>);

    impl Model {
        fn take(&mut self, rule: Rule, mut order: Order) -> Vec<Fill> {
            let mut fills = Vec::new();
            while order.quantity > 0 {
                let trades = |other: &&Order| {
                    other.side != order.side
                        && match (rule, order.side) {
                            (Rule::Exact, _) => other.price == order.price,
                            (Rule::PriceTime, Side::Buy) => other.price <= order.price,
                            (Rule::PriceTime, Side::Sell) => other.price >= order.price,
                        }
                };
                let better = |other: &&Order| match order.side {
                    Side::Buy => (i32::from(other.price), other.id),
                    Side::Sell => (-i32::from(other.price), other.id),
                };
                let Some(best) = self.0.iter().filter(trades).min_by_key(better).copied() else {
                    break;
                };
                let quantity = best.quantity.min(order.quantity);
                fills.push(Fill { resting: best.id, price: best.price, quantity });
                order.quantity -= quantity;
                let resting = self.0.iter_mut().find(|other| other.id == best.id).unwrap();
                resting.quantity -= quantity;
                self.0.retain(|other| other.quantity > 0);
            }
            if order.quantity > 0 {
                self.0.push(order);
            }
            fills
        }

        fn quote(&self) -> (u16, u16) {
            let of = |side| self.0.iter().filter(move |order| order.side == side);
            let bid = of(Side::Buy).map(|order| order.price).max();
            let ask = of(Side::Sell).map(|order| order.price).min();
            (bid.unwrap_or(0), ask.unwrap_or(0))
        }

        fn lots(&self, side: Side) -> u64 {
            let own = self.0.iter().filter(|order| order.side == side);
            own.map(|order| u64::from(order.quantity)).sum()
        }
    }

    proptest! {
        #[test]
        fn both_books_trade_as_a_list_that_is_searched(
            price_time: bool,
            orders in prop::collection::vec((any::<bool>(), 1u16..12, 1u16..6), 0..200),
        ) {
            let rule = if price_time { Rule::PriceTime } else { Rule::Exact };
            let (mut book, mut model) = (Book::new(rule), Model::default());
            for (id, (buys, price, quantity)) in (0..).zip(orders) {
                let side = if buys { Side::Buy } else { Side::Sell };
                let order = Order { id, side, price, quantity };
                let mut fills = Vec::new();
                book.take(&order, |fill| fills.push(fill));
                prop_assert_eq!(fills, model.take(rule, order));
                prop_assert_eq!(book.quote(), model.quote());
                let [bids, asks] = book.depth(usize::MAX);
                let lots = |side: &[(u16, u64)]| side.iter().map(|(_, lots)| lots).sum::<u64>();
                prop_assert_eq!(lots(&bids), model.lots(Side::Buy));
                prop_assert_eq!(lots(&asks), model.lots(Side::Sell));
            }
        }
    }

    #[test]
    fn fingerprints_tell_books_apart() {
        let order = |id, price| Order { id, side: Side::Buy, price, quantity: 1 };
        let book = |orders: &[Order]| {
            let mut book = Book::new(Rule::Exact);
            orders.iter().for_each(|order| book.take(order, |_| ()));
            book.fingerprint()
        };
        assert_eq!(book(&[order(1, 5), order(2, 6)]), book(&[order(1, 5), order(2, 6)]));
        assert_ne!(book(&[order(1, 5), order(2, 6)]), book(&[order(1, 5)]));
        assert_ne!(book(&[order(1, 5), order(2, 5)]), book(&[order(2, 5), order(1, 5)]));
    }
}
