//! Which messages went out, and which arrived: at both ends the same sums, if none was lost, doubled or changed. The same
//! of replies, and of the baseline's pieces.

use serde::{Deserialize, Serialize};

use crate::inbox::Delivery;

/// Messages by their stamps, of which a publisher gives no two the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub count: u64,
    /// Of a hash of each stamp, wrapping.
    pub sum: u64,
}

/// What one consumer of one publisher's messages found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Audit {
    pub ledger: Ledger,
    /// Messages that came behind a later one, or twice.
    pub out_of_order: u64,
    /// Messages with another body than was sent.
    pub damaged: u64,
    last: u64,
}

impl Ledger {
    pub(crate) const fn add(&mut self, stamp: u64) {
        self.count += 1;
        // So that two wrong stamps do not make up for each other.
        self.sum =
            self.sum.wrapping_add((stamp ^ (stamp >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
}

/// What a publisher got back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Replies {
    /// What its consumers are to reply.
    pub expected: Ledger,
    pub audit: Audit,
}

impl Replies {
    /// Returns what is wrong with them, if anything is.
    pub(crate) fn complaint(&self) -> Option<String> {
        self.audit.complaint(&self.expected, "replies")
    }
}

impl Audit {
    pub(crate) fn add(&mut self, delivery: &Delivery) {
        self.out_of_order += u64::from(delivery.stamp <= self.last);
        self.last = delivery.stamp;
        self.add_in_any_order(delivery);
    }

    /// One of several that overtake each other.
    pub(crate) fn add_in_any_order(&mut self, delivery: &Delivery) {
        self.ledger.add(delivery.stamp);
        self.damaged += u64::from(delivery.is_damaged);
    }

    /// Returns what is wrong, if anything is, with what one consumer got of what was sent; `things`
    /// is what these are.
    pub(crate) fn complaint(&self, sent: &Ledger, things: &str) -> Option<String> {
        let (got, expected) = (self.ledger.count, sent.count);
        let complaint = match (got.cmp(&expected), self.damaged, self.out_of_order) {
            (std::cmp::Ordering::Less, ..) => {
                format!("{} of {expected} {things} are lost", expected - got)
            }
            (std::cmp::Ordering::Greater, ..) => format!("{got} {things} arrived of {expected}"),
            (_, 1.., _) => {
                format!("{} of {expected} {things} arrived with another body", self.damaged)
            }
            (.., 1..) => {
                format!("{} of {expected} {things} arrived out of order", self.out_of_order)
            }
            _ if self.ledger != *sent => format!("other {things} arrived than were sent"),
            _ => return None,
        };
        Some(complaint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit(deliveries: &[(u64, bool)]) -> Audit {
        let mut audit = Audit::default();
        for (stamp, is_damaged) in deliveries.iter().copied() {
            audit.add(&Delivery { tag: 1, stamp, size: 16, is_damaged });
        }
        audit
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        let mut sent = Ledger::default();
        [5, 6, 7].into_iter().for_each(|stamp| sent.add(stamp));
        let of = |stamps: &[u64]| {
            let deliveries: Vec<_> = stamps.iter().map(|stamp| (*stamp, false)).collect();
            audit(&deliveries).complaint(&sent, "messages")
        };
        assert_eq!(of(&[5, 6, 7]), None);
        for (stamps, complaint) in [
            (&[5, 7][..], "1 of 3 messages are lost"),
            (&[5, 6, 6, 7], "4 messages arrived of 3"),
            (&[5, 7, 6], "1 of 3 messages arrived out of order"),
            (&[5, 6, 6], "1 of 3 messages arrived out of order"),
            (&[5, 6, 8], "other messages arrived than were sent"),
        ] {
            assert_eq!(of(stamps).as_deref(), Some(complaint), "{stamps:?}");
        }
        let damaged = audit(&[(5, false), (6, true), (7, false)]).complaint(&sent, "pieces");
        assert_eq!(damaged.as_deref(), Some("1 of 3 pieces arrived with another body"));
    }
}
