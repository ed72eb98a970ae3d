//! How long to wait before something is tried again.

use std::time::Duration;

/// Short enough that a queue that is declared anew is found at once, as people see it.
const FIRST: Duration = Duration::from_millis(100);

/// Long enough that a peer that is gone for hours costs nothing.
const LONGEST: Duration = Duration::from_secs(5);

/// Doubles from one failure to the next.
#[derive(Clone, Copy, Debug)]
pub struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self::new()
    }
}

impl Pause {
    /// Begins with the shortest wait.
    #[must_use]
    pub const fn new() -> Self {
        Self(FIRST)
    }

    /// The wait before the next attempt; the one after that is twice as long.
    pub fn lengthen(&mut self) -> Duration {
        let this = self.0;
        self.0 = (this * 2).min(LONGEST);
        this
    }

    /// It went well: the next failure is the first one again.
    pub const fn reset(&mut self) {
        self.0 = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_begin_anew() {
        let mut pause = Pause::new();
        let waits: Vec<_> = (0..8).map(|_| pause.lengthen().as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        pause.reset();
        assert_eq!(pause.lengthen(), FIRST);
    }
}
