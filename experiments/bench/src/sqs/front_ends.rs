//! A client of several front-ends: each call goes to the next one, as through a balancer before them.

use std::time::Duration;

use fastrand::Rng;
use quelea_sqs_client::{Client, Error, Loss, Retry};

use crate::clock::{SECOND_NS, now_ns};

/// A front-end that could not be reached, or did not answer in time, is passed over for so long.
const PASSED_OVER_NS: u64 = SECOND_NS;

/// Calls front-ends in turns, over a connection of its own to each.
#[derive(Debug)]
pub(crate) struct FrontEnds {
    front_ends: Vec<FrontEnd>,
    next: usize,
    retry: Retry,
    patience: Duration,
    answer: Vec<u8>,
    rng: Rng,
}

#[derive(Debug)]
struct FrontEnd {
    client: Client,
    passed_over_until_ns: u64,
}

impl FrontEnds {
    /// Returns a client of these front-ends. `first` is the place of the front-end that gets the
    /// first call, so that threads do not all begin with the same.
    pub(crate) fn new(
        clients: impl IntoIterator<Item = Client>,
        first: usize,
        retry: Retry,
        patience: Duration,
    ) -> Self {
        // Tries are counted here, since each is another front-end's.
        let once = |client: Client| client.with_retry(Retry::never()).with_patience(patience);
        let front_end = |client| FrontEnd { client: once(client), passed_over_until_ns: 0 };
        let front_ends: Vec<FrontEnd> = clients.into_iter().map(front_end).collect();
        let next = first % front_ends.len().max(1);
        Self { front_ends, next, retry, patience, answer: Vec::new(), rng: Rng::new() }
    }

    /// Lets each connection lose what the closure made for it says; closures get the connection's
    /// place.
    pub(crate) fn inject<F>(&mut self, mut faults: impl FnMut(usize) -> F)
    where
        F: FnMut() -> Option<Loss> + Send + Sync + 'static,
    {
        for (at, front_end) in self.front_ends.iter_mut().enumerate() {
            front_end.client.inject(faults(at));
        }
    }

    /// Ends all connections, and forgets what was injected.
    pub(crate) fn reconnect(&mut self) {
        for front_end in &mut self.front_ends {
            front_end.client = front_end.client.clone();
        }
    }

    /// Makes a call. What failed and may succeed is tried again, at the next front-end.
    ///
    /// # Errors
    /// [`Error`] of the last try.
    pub(crate) fn call(&mut self, action: &'static str, body: &[u8]) -> Result<&[u8], Error> {
        self.call_waiting(action, body, 0)
    }

    /// Makes a call as [`Self::call`] does, one that the service may answer so many seconds later.
    ///
    /// # Errors
    /// [`Error`] of the last try.
    pub(crate) fn call_waiting(
        &mut self,
        action: &'static str,
        body: &[u8],
        wait_s: u32,
    ) -> Result<&[u8], Error> {
        let patience = self.patience + Duration::from_secs(wait_s.into());
        let mut failures = 0;
        loop {
            let at = self.take_turn(now_ns());
            let front_end = &mut self.front_ends[at];
            let error = match front_end.client.call_patiently(action, body, patience) {
                Ok(answer) => {
                    self.answer.clear();
                    self.answer.extend_from_slice(answer);
                    return Ok(&self.answer);
                }
                Err(error) => error,
            };
            if matches!(error, Error::Connect { .. } | Error::Response(_)) {
                front_end.passed_over_until_ns = now_ns() + PASSED_OVER_NS;
            }
            failures += 1;
            if failures >= self.retry.attempts || !error.is_transient() {
                return Err(error);
            }
            std::thread::sleep(self.span(failures).mul_f64(self.rng.f64()));
        }
    }

    /// Takes a turn. Returns the place of the front-end whose turn it is; the next one's if it is
    /// passed over, unless all are.
    fn take_turn(&mut self, now: u64) -> usize {
        let count = self.front_ends.len();
        let in_turn = (0..count).map(|further| (self.next + further) % count);
        let mut usable = in_turn.filter(|at| self.front_ends[*at].passed_over_until_ns <= now);
        let at = usable.next().unwrap_or(self.next);
        self.next = (at + 1) % count;
        at
    }

    /// Returns the longest pause after so many failures: it doubles from failure to failure, up to
    /// the longest of all.
    fn span(&self, failures: u32) -> Duration {
        let doubled = self.retry.first.saturating_mul(1 << failures.saturating_sub(1).min(30));
        doubled.min(self.retry.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns three front-ends. Nobody listens there, and nobody is asked.
    fn three() -> FrontEnds {
        let client = |_| Client::new("http://127.0.0.1:1".parse().unwrap(), None);
        FrontEnds::new((0..3).map(client), 4, Retry::never(), Duration::from_secs(1))
    }

    #[test]
    fn each_call_is_the_next_front_ends() {
        let mut three = three();
        let turns: Vec<usize> = (0..5).map(|_| three.take_turn(0)).collect();
        assert_eq!(turns, [1, 2, 0, 1, 2]);
    }

    #[test]
    fn one_that_fails_is_passed_over_for_a_while_unless_all_do() {
        let mut three = three();
        three.front_ends[1].passed_over_until_ns = 10;
        let turns: Vec<usize> = (0..4).map(|_| three.take_turn(9)).collect();
        assert_eq!(turns, [2, 0, 2, 0]);
        assert_eq!(three.take_turn(10), 1, "its time is over");
        three.front_ends.iter_mut().for_each(|one| one.passed_over_until_ns = 100);
        let turns: Vec<usize> = (0..3).map(|_| three.take_turn(50)).collect();
        assert_eq!(turns, [2, 0, 1]);
    }

    #[test]
    fn spans_double_up_to_the_longest() {
        let retry = Retry {
            attempts: 9,
            first: Duration::from_millis(5),
            longest: Duration::from_millis(20),
        };
        let front_ends = FrontEnds { retry, ..three() };
        let spans = [1, 2, 3, 4, 99].map(|failures| front_ends.span(failures).as_millis());
        assert_eq!(spans, [5, 10, 20, 20, 20]);
    }
}
