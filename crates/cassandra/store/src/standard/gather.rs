//! Group commit: what is asked for while a request is under way gathers, and goes into the next one together.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quelea_sqs_protocol::Fault;

/// Jobs of one kind for one queue. Whoever finds nobody at it carries them out until none is left.
#[derive(Debug)]
pub(crate) struct Gatherer<J> {
    gathered: Mutex<Gathered<J>>,
}

#[derive(Debug)]
struct Gathered<J> {
    jobs: VecDeque<(J, Size)>,
    size: Size,
    is_served: bool,
}

/// Returns the fault that says that more waits than may.
pub(crate) fn too_much() -> Fault {
    Fault::Unavailable("too much waits for Cassandra".to_owned())
}

/// What a job weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl<J> Default for Gatherer<J> {
    fn default() -> Self {
        let gathered = Gathered { jobs: VecDeque::new(), size: Size::default(), is_served: false };
        Self { gathered: Mutex::new(gathered) }
    }
}

impl<J> Gatherer<J> {
    /// Adds a job, unless more wait than `limit`. Returns whether the caller has to have them carried out.
    pub(crate) fn push(&self, job: J, size: Size, limit: Size) -> Result<bool, Fault> {
        let mut gathered = self.lock();
        let (rows, bytes) = (gathered.size.rows + size.rows, gathered.size.bytes + size.bytes);
        if !gathered.jobs.is_empty() && (rows > limit.rows || bytes > limit.bytes) {
            return Err(too_much());
        }
        gathered.size = Size { rows, bytes };
        gathered.jobs.push_back((job, size));
        Ok(!std::mem::replace(&mut gathered.is_served, true))
    }

    /// Takes the next jobs, one at least, then as many as stay within `most`. `None`: there are
    /// none, and whoever adds one begins anew.
    pub(crate) fn take(&self, most: Size) -> Option<Vec<J>> {
        let mut gathered = self.lock();
        let taken = gathered.take(most);
        gathered.is_served = !taken.is_empty();
        (!taken.is_empty()).then_some(taken)
    }

    /// Takes what has come meanwhile, for whoever is at it and has not done with the last: it goes
    /// on.
    pub(crate) fn take_more(&self, most: Size) -> Vec<J> {
        self.lock().take(most)
    }

    /// Returns whether nothing waits and nobody is at it.
    pub(crate) fn is_idle(&self) -> bool {
        !self.lock().is_served
    }

    /// Returns what is held by whoever carries jobs out. When it is dropped before its end, as in a
    /// panic, what waits is given up, and the next to come begins anew.
    pub(crate) fn serving(&self) -> Serving<'_, J> {
        Serving { gatherer: self, is_done: false }
    }

    fn lock(&self) -> MutexGuard<'_, Gathered<J>> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody carries jobs out.
pub(crate) struct Serving<'a, J> {
    gatherer: &'a Gatherer<J>,
    is_done: bool,
}

impl<J> Serving<'_, J> {
    /// None was left: whoever adds one begins anew already.
    pub(crate) fn done(mut self) {
        self.is_done = true;
    }
}

impl<J> Drop for Serving<'_, J> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut gathered = self.gatherer.lock();
        gathered.is_served = false;
        gathered.size = Size::default();
        let given_up = std::mem::take(&mut gathered.jobs);
        drop(gathered);
        drop(given_up);
    }
}

impl<J> Gathered<J> {
    fn take(&mut self, most: Size) -> Vec<J> {
        let (mut taken, mut size) = (Vec::new(), Size::default());
        while let Some((_, next)) = self.jobs.front() {
            let (rows, bytes) = (size.rows + next.rows, size.bytes + next.bytes);
            if !taken.is_empty() && (rows > most.rows || bytes > most.bytes) {
                break;
            }
            size = Size { rows, bytes };
            taken.extend(self.jobs.pop_front().map(|(job, _)| job));
        }
        self.size.rows -= size.rows;
        self.size.bytes -= size.bytes;
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROW: Size = Size { rows: 1, bytes: 10 };
    const LIMIT: Size = Size { rows: 5, bytes: 1_000 };

    #[test]
    fn the_first_to_come_serves_until_none_is_left() {
        let gatherer = Gatherer::default();
        assert_eq!(gatherer.push('a', ROW, LIMIT), Ok(true));
        assert_eq!(gatherer.take(LIMIT), Some(vec!['a']));
        assert_eq!(
            gatherer.push('b', ROW, LIMIT),
            Ok(false),
            "it gathers while the first is under way"
        );
        assert_eq!(gatherer.push('c', ROW, LIMIT), Ok(false));
        assert_eq!(gatherer.take(LIMIT), Some(vec!['b', 'c']));
        assert_eq!(gatherer.take(LIMIT), None);
        assert!(gatherer.is_idle());
        assert_eq!(gatherer.push('d', ROW, LIMIT), Ok(true));
    }

    #[test]
    fn what_waits_for_somebody_who_was_broken_off_is_given_up() {
        let gatherer = Gatherer::default();
        assert_eq!(gatherer.push('a', ROW, LIMIT), Ok(true));
        let serving = gatherer.serving();
        assert_eq!(gatherer.take(LIMIT), Some(vec!['a']));
        assert_eq!(gatherer.push('b', ROW, LIMIT), Ok(false));
        drop(serving);
        assert!(gatherer.is_idle());
        assert_eq!(gatherer.push('c', ROW, LIMIT), Ok(true), "the next to come begins anew");
        let serving = gatherer.serving();
        assert_eq!(gatherer.take(LIMIT), Some(vec!['c']));
        assert_eq!(gatherer.take(LIMIT), None);
        assert_eq!(gatherer.push('d', ROW, LIMIT), Ok(true));
        serving.done();
        assert_eq!(gatherer.take(LIMIT), Some(vec!['d']), "an end in good order gives up nothing");
    }

    #[test]
    fn what_is_too_much_is_refused_and_what_is_too_large_goes_alone() {
        let gatherer = Gatherer::default();
        let large = Size { rows: 1, bytes: 5_000 };
        assert_eq!(gatherer.push('a', large, LIMIT), Ok(true));
        assert!(gatherer.push('b', ROW, LIMIT).is_err());
        assert_eq!(gatherer.take(LIMIT), Some(vec!['a']));
        for job in ['b', 'c', 'd', 'e', 'f'] {
            assert_eq!(gatherer.push(job, ROW, LIMIT), Ok(false));
        }
        assert!(gatherer.push('g', ROW, LIMIT).is_err());
    }

    proptest! {
        #[test]
        fn every_job_is_taken_once_and_in_order(
            sizes in prop::collection::vec((1usize..20, 1usize..100), 0..50), rows in 1usize..40, bytes in 1usize..200
        ) {
            let gatherer = Gatherer::default();
            let endless = Size { rows: usize::MAX / 2, bytes: usize::MAX / 2 };
            for (job, (rows, bytes)) in sizes.iter().enumerate() {
                let _ = gatherer.push(job, Size { rows: *rows, bytes: *bytes }, endless);
            }
            let mut taken = Vec::new();
            while let Some(jobs) = gatherer.take(Size { rows, bytes }) {
                let total: usize = jobs.iter().map(|job| sizes[*job].0).sum();
                prop_assert!(total <= rows || jobs.len() == 1);
                taken.extend(jobs);
            }
            prop_assert_eq!(taken, (0..sizes.len()).collect::<Vec<_>>());
        }
    }
}
