//! What a listener has been given.

use quelea_elastic_proto::ClientId;
use quelea_elastic_proto::session::{Event, Message};

/// Returns what a listener has seen of one producer: the numbers of its messages, and its gaps.
pub(crate) fn of_producer(seen: &[Event], producer: usize) -> Vec<Seen> {
    let id = ClientId(1 + producer as u128);
    seen.iter()
        .filter_map(|event| match event {
            Event::Message(message) if message.producer == id => {
                check_body(message, producer);
                Some(Seen::Message(message.sequence.0))
            }
            Event::Gap(gap) if gap.producer == id => Some(Seen::Gap(gap.from.0, gap.to.0)),
            _ => None,
        })
        .collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Message(u64),
    Gap(u64, u64),
}

fn check_body(message: &Message, producer: usize) {
    let expected = format!("{producer}:{}", message.sequence.0);
    assert_eq!(message.body(), expected.as_bytes(), "a message keeps its number");
}
