//! A promise waits for its ticket.

/// When a promise about what was appended may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// At once.
    None,
    /// When the operating system has it: it survives the process, not the machine's power.
    Os,
    /// When the disk has it.
    Fsync,
}

/// Stands for all that had been appended when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub(crate) batch: u64,
    pub(crate) durability: Durability,
}

impl Ticket {
    /// Always reached.
    pub const NONE: Self = Self { batch: 0, durability: Durability::None };

    /// Returns the number of the batch that has to become durable; 0 if none has to. Later appends
    /// have the same or a greater number.
    #[must_use]
    pub const fn batch(self) -> u64 {
        self.batch
    }

    /// Returns how durable it has to become.
    #[must_use]
    pub const fn durability(self) -> Durability {
        self.durability
    }

    /// Returns a ticket that is reached when both are: the later batch, the stricter durability. It
    /// may be reached somewhat later than both if the two differ in both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            batch: self.batch.max(other.batch),
            durability: self.durability.max(other.durability),
        }
    }
}

/// How far the log has come. Only ever grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// All batches up to this one were handed to the operating system.
    pub written: u64,
    /// All batches up to this one are on the disk; at most `written`.
    pub synced: u64,
}

impl Progress {
    /// Returns whether what the ticket stands for is as durable as it asks.
    #[must_use]
    pub const fn reached(&self, ticket: Ticket) -> bool {
        match ticket.durability {
            Durability::None => true,
            Durability::Os => self.written >= ticket.batch,
            Durability::Fsync => self.synced >= ticket.batch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_reached_once_its_batch_is_durable_enough() {
        let progress = Progress { written: 5, synced: 3 };
        assert!(progress.reached(Ticket::NONE));
        assert!(progress.reached(Ticket { batch: 9, durability: Durability::None }));
        assert!(progress.reached(Ticket { batch: 5, durability: Durability::Os }));
        assert!(!progress.reached(Ticket { batch: 6, durability: Durability::Os }));
        assert!(progress.reached(Ticket { batch: 3, durability: Durability::Fsync }));
        assert!(!progress.reached(Ticket { batch: 4, durability: Durability::Fsync }));
    }

    #[test]
    fn a_joined_ticket_is_not_reached_before_either() {
        let os = Ticket { batch: 7, durability: Durability::Os };
        let joined = os.join(Ticket { batch: 2, durability: Durability::Fsync });
        assert!(!Progress { written: 7, synced: 6 }.reached(joined));
        assert!(Progress { written: 7, synced: 7 }.reached(joined));
        assert_eq!(os.join(Ticket::NONE), os);
    }
}
