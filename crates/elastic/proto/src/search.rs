//! Where a relay or a client looks for the directory that owns its queue: at those that were announced last, at those
//! of its start, at a few that were announced before; in turn, or where one of them sends it.

/// Pauses between two rounds over all addresses: doubled from the first to the last. Ours: a sans-I/O room has its
/// randomness from outside.
const PAUSE_MS_MIN: u64 = 100;
const PAUSE_MS_MAX: u64 = 400;
/// A pause is up to half longer, so that not all come at once: this is the longest.
pub const SEARCH_PAUSE_MS_MAX: u64 = PAUSE_MS_MAX + PAUSE_MS_MAX / 2;
/// The longest that a directory may have somebody wait whom it sends away.
const REDIRECTED_MS_MAX: u64 = 1_000;
/// Redirections in a row, before it is a failure as any other: two directories may each believe that the
/// other one owns the queue.
const REDIRECTIONS_MAX: u32 = 8;
/// Directories that are tried though they are no longer announced: they may have been away for a moment. Each that is
/// gone for good may cost a round some seconds.
const FORMER_MAX: usize = 4;

/// The addresses to try, in turn. [`Self::address`] says which to try, [`Self::lost`] that it was in vain, or is over.
#[derive(Clone, Debug)]
pub struct DirectorySearch {
    /// Of the start, each once.
    first: Vec<String>,
    /// All, each once, in the order of a round.
    addresses: Vec<String>,
    /// The place of the next one.
    at: usize,
    /// Tried without a pause.
    in_vain: usize,
    /// Where it was sent instead.
    sent_to: Option<String>,
    tried: String,
    redirections: u32,
    pause_ms: u64,
    /// Whose pauses differ.
    salt: u64,
}

impl DirectorySearch {
    /// Begins with these directories, `host:port` each. Pauses differ with the salt: a thousand who lose a directory
    /// do not come to the next at once.
    ///
    /// # Panics
    /// If there is no directory.
    #[must_use]
    pub fn new(first: impl IntoIterator<Item = String>, salt: u64) -> Self {
        let first = each_once(first.into_iter());
        assert!(!first.is_empty(), "who looks for a directory was given one");
        Self {
            addresses: first.clone(),
            first,
            at: 0,
            in_vain: 0,
            sent_to: None,
            tried: String::new(),
            redirections: 0,
            pause_ms: PAUSE_MS_MIN,
            salt,
        }
    }

    /// Begins as [`Self::new`] does, but at any of them: a thousand clients do not all ask the
    /// first.
    #[must_use]
    pub fn anywhere(first: &[String], salt: u64) -> Self {
        let (before, after) = first.split_at((salt % first.len().max(1) as u64) as usize);
        Self::new(after.iter().chain(before).cloned(), salt)
    }

    /// Returns the address to try now.
    pub fn address(&mut self) -> &str {
        let sent_to = self.sent_to.take();
        self.tried = sent_to.unwrap_or_else(|| self.addresses[self.at].clone());
        &self.tried
    }

    /// Returns the address that was tried last; empty before.
    #[must_use]
    pub fn tried(&self) -> &str {
        &self.tried
    }

    /// The directory says which there are. Each names itself first: those that are known keep their order, or a round
    /// would never come to its end.
    pub fn learn(&mut self, directories: &[String]) {
        let (known, others): (Vec<_>, Vec<_>) =
            self.addresses.drain(..).partition(|address| directories.contains(address));
        let announced = known.into_iter().chain(directories.iter().cloned());
        self.addresses = each_once(announced.chain(self.first.iter().cloned()));
        let former = others.into_iter().filter(|address| !self.first.contains(address));
        self.addresses.extend(former.take(FORMER_MAX));
        self.at = self.place().unwrap_or(0);
    }

    /// Returns the place of the one that was tried last; none if it was sent to one that is not
    /// known.
    fn place(&self) -> Option<usize> {
        self.addresses.iter().position(|one| *one == self.tried)
    }

    /// Notes that it was in vain, or that the connection is over; `served` if that directory had
    /// taken it. `redirection` is where it sent it (empty: it does not know) and how many
    /// milliseconds it shall wait. Returns the pause before the next try, milliseconds.
    pub fn lost(&mut self, served: bool, redirection: Option<(String, u64)>) -> u64 {
        if served {
            (self.redirections, self.pause_ms) = (0, PAUSE_MS_MIN);
        }
        let (address, wait_ms) = redirection.unwrap_or_default();
        let wait_ms = wait_ms.min(REDIRECTED_MS_MAX);
        if !address.is_empty() && self.redirections < REDIRECTIONS_MAX {
            self.redirections += 1;
            self.sent_to = Some(address);
            return wait_ms;
        }
        self.at = (self.place().unwrap_or(self.at) + 1) % self.addresses.len();
        self.in_vain += 1;
        // A round may be one directory that sends it to another that knows no more.
        let redirected = std::mem::take(&mut self.redirections) > 0;
        if self.in_vain < self.addresses.len() && !served && !redirected {
            return 0;
        }
        self.in_vain = 0;
        let pause_ms = self.spread(self.pause_ms);
        self.pause_ms = PAUSE_MS_MAX.min(self.pause_ms * 2);
        pause_ms.max(wait_ms)
    }

    /// Returns a pause of one to one and a half times this one.
    const fn spread(&self, pause_ms: u64) -> u64 {
        // Fibonacci hashing: neighbouring numbers are far apart.
        let share = self.salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        pause_ms + pause_ms * share / 512
    }
}

fn each_once(addresses: impl Iterator<Item = String>) -> Vec<String> {
    let mut once = Vec::new();
    for address in addresses {
        if !once.contains(&address) {
            once.push(address);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(first: &[&str]) -> DirectorySearch {
        DirectorySearch::new(owned(first), 1)
    }

    fn owned(addresses: &[&str]) -> Vec<String> {
        addresses.iter().map(|address| (*address).to_owned()).collect()
    }

    /// Makes the next so many tries, each in vain. Returns their addresses, and whether there is a
    /// pause after each.
    fn tries(search: &mut DirectorySearch, count: usize) -> Vec<(String, bool)> {
        let one = |_| {
            let address = search.address().to_owned();
            (address, search.lost(false, None) > 0)
        };
        (0..count).map(one).collect()
    }

    fn rounds(of: &[&str], count: usize) -> Vec<(String, bool)> {
        let pauses = |at| at + 1 == of.len();
        let round = of.iter().enumerate().map(|(at, one)| ((*one).to_owned(), pauses(at)));
        std::iter::repeat_n(round.collect::<Vec<_>>(), count).flatten().collect()
    }

    #[test]
    fn each_is_tried_in_turn_with_a_pause_after_all() {
        let mut search = search(&["a", "a", "b", "c", "b"]);
        assert_eq!(tries(&mut search, 9), rounds(&["a", "b", "c"], 3));
    }

    #[test]
    fn clients_begin_with_any_of_them_and_try_all() {
        let addresses = owned(&["a", "b", "c"]);
        for salt in 0..6 {
            let mut order = ["a", "b", "c"];
            order.rotate_left(salt % 3);
            let mut search = DirectorySearch::anywhere(&addresses, salt as u64);
            assert_eq!(tries(&mut search, 6), rounds(&order, 2));
        }
    }

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew_when_it_was_served() {
        let mut search = search(&["a"]);
        let pauses: Vec<u64> = (0..6).map(|_| search.lost(false, None)).collect();
        assert!(pauses.is_sorted() && pauses[5] <= SEARCH_PAUSE_MS_MAX, "{pauses:?}");
        assert!(pauses[5] >= PAUSE_MS_MAX && pauses[0] >= PAUSE_MS_MIN);
        assert_eq!(search.lost(true, None), pauses[0]);
    }

    #[test]
    fn announced_directories_come_first_and_a_few_former_ones_last() {
        let mut search = search(&["a", "b"]);
        search.learn(&owned(&["c", "d", "a"]));
        assert_eq!(search.addresses, owned(&["a", "c", "d", "b"]));
        search.learn(&owned(&["d"]));
        assert_eq!(search.addresses, owned(&["d", "a", "b", "c"]));
        assert_eq!(tries(&mut search, 8), rounds(&["d", "a", "b", "c"], 2));
        for number in 0..100 {
            search.learn(&[format!("directory {number}")]);
        }
        assert_eq!(search.addresses.len(), 1 + 2 + FORMER_MAX);
        search.learn(&[]);
        assert_eq!(
            search.addresses[..2],
            owned(&["a", "b"]),
            "those of the start, if nothing is said"
        );
    }

    #[test]
    fn after_the_owner_it_tries_the_next() {
        let mut search = search(&["a", "b", "c"]);
        search.lost(false, Some(("c".to_owned(), 0)));
        assert_eq!(search.address(), "c");
        search.learn(&owned(&["c", "b", "a", "d"]));
        assert!(search.lost(true, None) > 0);
        assert_eq!(search.address(), "d");
    }

    #[test]
    fn a_round_comes_to_its_end_though_each_tells_another_order() {
        let mut search = search(&["a", "b", "c"]);
        for round in 0..3 {
            for (at, announced) in
                [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]].iter().enumerate()
            {
                assert_eq!(search.address(), announced[0], "round {round}");
                search.learn(&owned(announced));
                assert_eq!(search.lost(false, None) > 0, at == 2, "round {round}");
            }
        }
    }

    #[test]
    fn redirections_are_followed_but_not_for_ever() {
        let mut search = search(&["a"]);
        for round in 0..3 {
            for _ in 0..REDIRECTIONS_MAX {
                assert_eq!(search.lost(false, Some(("b".to_owned(), 7))), 7, "round {round}");
                assert_eq!(search.address(), "b");
            }
            assert!(search.lost(false, Some(("b".to_owned(), 7))) >= PAUSE_MS_MIN);
            assert_eq!(search.address(), "a");
        }
    }

    #[test]
    fn two_that_send_it_to_and_fro_are_not_asked_without_pauses() {
        let mut search = search(&["a", "b"]);
        for _ in 0..10 {
            search.address();
            assert_eq!(search.lost(false, Some(("a".to_owned(), 0))), 0);
            assert_eq!(search.address(), "a");
            assert!(search.lost(false, None) > 0);
        }
    }

    #[test]
    fn a_redirection_without_an_address_is_retried_after_its_pause() {
        let mut search = search(&["a", "b"]);
        search.address();
        assert_eq!(search.lost(false, Some((String::new(), 900))), 0, "the other one may know");
        assert_eq!(search.address(), "b");
        assert!(search.lost(false, Some((String::new(), 900))) >= 900);
        assert_eq!(search.address(), "a");
    }
}
