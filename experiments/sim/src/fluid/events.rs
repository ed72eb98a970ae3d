//! What happens to a queue at which second of its agenda.

use quelea_testkit::Agenda;

/// Microseconds, the agenda's unit.
const SECOND: u64 = 1_000_000;

/// Something that happens to a queue by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The day goes on.
    Day,
    /// A producer comes.
    Join,
    /// One goes.
    Leave { slot: u32, life: u32 },
    /// One sends more for a while.
    Burst { slot: u32, life: u32 },
    /// And then as before.
    Calm { slot: u32, life: u32 },
    /// All send more for a while.
    Flash,
    /// And then as before.
    FlashOver,
    /// A relay has booted.
    Booted { relay: u64 },
    /// A relay dies.
    Crash { relay: u64 },
    /// The directory declares it dead.
    Found { relay: u64 },
}

/// Enters what happens after so many seconds, at least one.
pub(super) fn enter(agenda: &mut Agenda<Event>, now: u32, seconds: f64, event: Event) {
    let wait = seconds.clamp(1.0, f64::from(u32::MAX / 2)) as u32;
    agenda.at(u64::from(now + wait) * SECOND, event);
}

/// Returns when the next event is.
pub(super) fn next_at(agenda: &Agenda<Event>) -> Option<u32> {
    agenda.next_us().map(|at_us| (at_us / SECOND) as u32)
}

/// Takes the next event that is due.
pub(super) fn take(agenda: &mut Agenda<Event>, now: u32) -> Option<Event> {
    agenda.next_until(u64::from(now) * SECOND)
}
