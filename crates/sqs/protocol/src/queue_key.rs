//! What a queue is called: by clients, and by the store that holds it.

use std::sync::Arc;

/// A queue as clients name it. A name is one queue, whatever its class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueRef {
    /// The account, which is a virtual host: 12 digits, or a virtual host's own name.
    pub account: Arc<str>,
    /// The queue's name.
    pub name: Arc<str>,
}

/// Which kind of store holds a queue: the attribute `Class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueClass {
    /// The log of one node, which keeps the order.
    Ordered,
    /// Cassandra, which keeps copies on several machines and almost the order.
    Replicated,
}

impl QueueClass {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Ordered, Self::Replicated];
    /// Their names, in the same order.
    pub(crate) const NAMES: [&'static str; Self::ALL.len()] =
        [Self::ALL[0].name(), Self::ALL[1].name()];

    /// Returns the attribute's value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Replicated => "replicated",
        }
    }

    /// Returns the class of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// A store's own name of a queue that exists: a queue that is deleted and made anew gets another. It
/// holds the class, so that no store takes another's key for one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueKey {
    class: QueueClass,
    id: u128,
}

impl QueueKey {
    /// Returns the key of a queue of that class; `id` is what its store finds it by.
    #[must_use]
    pub const fn new(class: QueueClass, id: u128) -> Self {
        Self { class, id }
    }

    /// Returns the class of the queue.
    #[must_use]
    pub const fn class(self) -> QueueClass {
        self.class
    }

    /// Returns what a store of that class finds the queue by; `None` if the queue is of another
    /// class.
    #[must_use]
    pub fn id_in(self, class: QueueClass) -> Option<u128> {
        (self.class == class).then_some(self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_no_queue_of_another_class() {
        let key = QueueKey::new(QueueClass::Replicated, 7);
        assert_eq!(key.id_in(QueueClass::Replicated), Some(7));
        assert_eq!(key.id_in(QueueClass::Ordered), None);
        assert_ne!(key, QueueKey::new(QueueClass::Ordered, 7));
    }

    #[test]
    fn classes_have_the_names_of_the_attribute() {
        for (name, class) in [
            ("ordered", Some(QueueClass::Ordered)),
            ("replicated", Some(QueueClass::Replicated)),
            ("Ordered", None),
            ("", None),
        ] {
            assert_eq!(QueueClass::from_name(name), class);
        }
        assert!(
            QueueClass::ALL.iter().all(|class| QueueClass::from_name(class.name()) == Some(*class))
        );
    }
}
