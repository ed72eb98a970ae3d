//! The six types of messages, in a compact form: a byte that names the type, then numbers, the most significant byte first.
//! Some nine bytes on average, as in the paper (§5.2).

/// The longest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 29;

/// Who buys or sells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Wants to pay the price at most.
    Buy,
    /// Wants to get the price at least.
    Sell,
}

/// An order, from the gateway to the matching engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its number; they count from 0.
    pub id: u32,
    /// Buy or sell.
    pub side: Side,
    /// In ticks.
    pub price: u16,
    /// In lots, at least one.
    pub quantity: u16,
}

/// Who measured a throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Orders sent, answers received.
    Gateway,
    /// Orders received, answers sent.
    Engine,
}

/// What goes through the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// 9 bytes.
    Order(Order),
    /// An order that found nobody to trade with: it rests in the book. 5 bytes.
    Confirmed {
        /// The order.
        id: u32,
    },
    /// Two orders have traded. 13 bytes.
    Traded {
        /// The order that came last.
        id: u32,
        /// The one that rested in the book.
        resting: u32,
        /// At this price.
        price: u16,
        /// So many lots.
        quantity: u16,
    },
    /// The highest bid or the lowest ask is another; 0: there is none. 5 bytes.
    Quote {
        /// The highest price that somebody pays.
        bid: u16,
        /// The lowest price that somebody takes.
        ask: u16,
    },
    /// Rates of a sample. 14 bytes.
    Throughput {
        /// Who measured.
        source: Source,
        /// Its number; they count from 0.
        sample: u32,
        /// Orders a second.
        orders_per_s: u32,
        /// Answers a second: confirmations, trades and quotes.
        answers_per_s: u32,
    },
    /// A quote of the market-data feed, which is no part of the paper's six types. 17 bytes.
    Tick {
        /// Its number; they count from 0.
        number: u32,
        /// When the engine made it: nanoseconds of [`crate::feed::now_ns`].
        at_ns: u64,
        /// As in a quote.
        bid: u16,
        /// As in a quote.
        ask: u16,
    },
    /// The end of the orders, of the answers or of the feed, which is no part of the paper's six types, either. 13 bytes.
    Closing {
        /// How many messages there were.
        count: u32,
        /// Of the answers, their digest (see [`crate::answers::Tally`]); of what is numbered, 0.
        digest: u64,
    },
    /// Order completion times of a sample. 29 bytes.
    Completion {
        /// Its number.
        sample: u32,
        /// The mean, in nanoseconds.
        mean_ns: u64,
        /// The median.
        p50_ns: u64,
        /// The 99th percentile.
        p99_ns: u64,
    },
}

/// Bytes that are no message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {bytes} bytes and type {kind} is none of the exchange's")]
pub struct Malformed {
    /// Its length.
    pub bytes: usize,
    /// Its first byte, 0 if it has none.
    pub kind: u8,
}

const BUY: u8 = 1;
const SELL: u8 = 2;
const CONFIRMED: u8 = 3;
const TRADED: u8 = 4;
const QUOTE: u8 = 5;
const THROUGHPUT: u8 = 6;
const COMPLETION: u8 = 7;
const TICK: u8 = 8;
const CLOSING: u8 = 9;

impl Message {
    /// Appends its bytes.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match *self {
            Self::Order(Order { id, side, price, quantity }) => {
                to.push(if side == Side::Buy { BUY } else { SELL });
                to.extend_from_slice(&id.to_be_bytes());
                to.extend_from_slice(&price.to_be_bytes());
                to.extend_from_slice(&quantity.to_be_bytes());
            }
            Self::Confirmed { id } => {
                to.push(CONFIRMED);
                to.extend_from_slice(&id.to_be_bytes());
            }
            Self::Traded { id, resting, price, quantity } => {
                to.push(TRADED);
                to.extend_from_slice(&id.to_be_bytes());
                to.extend_from_slice(&resting.to_be_bytes());
                to.extend_from_slice(&price.to_be_bytes());
                to.extend_from_slice(&quantity.to_be_bytes());
            }
            Self::Quote { bid, ask } => {
                to.push(QUOTE);
                to.extend_from_slice(&bid.to_be_bytes());
                to.extend_from_slice(&ask.to_be_bytes());
            }
            Self::Throughput { source, sample, orders_per_s, answers_per_s } => {
                to.push(THROUGHPUT);
                to.push(u8::from(source == Source::Engine));
                to.extend_from_slice(&sample.to_be_bytes());
                to.extend_from_slice(&orders_per_s.to_be_bytes());
                to.extend_from_slice(&answers_per_s.to_be_bytes());
            }
            Self::Tick { number, at_ns, bid, ask } => {
                to.push(TICK);
                to.extend_from_slice(&number.to_be_bytes());
                to.extend_from_slice(&at_ns.to_be_bytes());
                to.extend_from_slice(&bid.to_be_bytes());
                to.extend_from_slice(&ask.to_be_bytes());
            }
            Self::Closing { count, digest } => {
                to.push(CLOSING);
                to.extend_from_slice(&count.to_be_bytes());
                to.extend_from_slice(&digest.to_be_bytes());
            }
            Self::Completion { sample, mean_ns, p50_ns, p99_ns } => {
                to.push(COMPLETION);
                to.extend_from_slice(&sample.to_be_bytes());
                for time_ns in [mean_ns, p50_ns, p99_ns] {
                    to.extend_from_slice(&time_ns.to_be_bytes());
                }
            }
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`Malformed`]
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let malformed =
            || Malformed { bytes: bytes.len(), kind: bytes.first().copied().unwrap_or(0) };
        let (&kind, rest) = bytes.split_first().ok_or_else(malformed)?;
        let mut rest = Rest(rest);
        let message = rest.message(kind).ok_or_else(malformed)?;
        if rest.0.is_empty() { Ok(message) } else { Err(malformed()) }
    }
}

/// What of a message is not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn message(&mut self, kind: u8) -> Option<Message> {
        Some(match kind {
            BUY | SELL => Message::Order(Order {
                side: if kind == BUY { Side::Buy } else { Side::Sell },
                id: self.u32()?,
                price: self.u16()?,
                quantity: self.u16().filter(|quantity| *quantity > 0)?,
            }),
            CONFIRMED => Message::Confirmed { id: self.u32()? },
            TRADED => Message::Traded {
                id: self.u32()?,
                resting: self.u32()?,
                price: self.u16()?,
                quantity: self.u16()?,
            },
            QUOTE => Message::Quote { bid: self.u16()?, ask: self.u16()? },
            THROUGHPUT => Message::Throughput {
                source: match self.take::<1>()? {
                    [0] => Source::Gateway,
                    [1] => Source::Engine,
                    _ => return None,
                },
                sample: self.u32()?,
                orders_per_s: self.u32()?,
                answers_per_s: self.u32()?,
            },
            TICK => Message::Tick {
                number: self.u32()?,
                at_ns: self.u64()?,
                bid: self.u16()?,
                ask: self.u16()?,
            },
            CLOSING => Message::Closing { count: self.u32()?, digest: self.u64()? },
            COMPLETION => Message::Completion {
                sample: self.u32()?,
                mean_ns: self.u64()?,
                p50_ns: self.u64()?,
                p99_ns: self.u64()?,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Message; 9] = [
        Message::Order(Order { id: 7, side: Side::Buy, price: 500, quantity: 3 }),
        Message::Order(Order { id: u32::MAX, side: Side::Sell, price: 1, quantity: 1 }),
        Message::Confirmed { id: 9 },
        Message::Traded { id: 1, resting: 2, price: 3, quantity: 4 },
        Message::Quote { bid: 0, ask: 77 },
        Message::Throughput {
            source: Source::Engine,
            sample: 1,
            orders_per_s: 60_000,
            answers_per_s: 9,
        },
        Message::Completion { sample: 5, mean_ns: 1, p50_ns: 2, p99_ns: u64::MAX },
        Message::Tick { number: 8, at_ns: u64::MAX, bid: 3, ask: 4 },
        Message::Closing { count: 9, digest: u64::MAX - 1 },
    ];

    #[test]
    fn each_message_comes_back_as_it_was() {
        for message in ALL {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            assert!(bytes.len() <= MESSAGE_BYTES_MAX);
            assert_eq!(Message::decode(&bytes), Ok(message));
            for length in 0..bytes.len() {
                assert!(Message::decode(&bytes[..length]).is_err(), "{message:?} cut at {length}");
            }
            bytes.push(0);
            assert!(Message::decode(&bytes).is_err(), "{message:?} and more");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(message) = Message::decode(&bytes) {
                let mut again = Vec::new();
                message.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
