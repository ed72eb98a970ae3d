//! How many files and sockets the process may have open, and how the fronts share them.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files of the process that are not connections: the log's, the listeners', the runtime's.
const OTHER_FILES: u64 = 256;

/// Raises the soft limit of open files to the hard one, which needs no privilege; returns how many
/// connections fit.
pub fn raise_file_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it is refused, the old limit holds, which is what is read below.
    let _ = setrlimit(Resource::Nofile, limit);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    files.saturating_sub(OTHER_FILES)
}

/// Returns how many connections each front may have, so that all together find files: what it
/// `wanted` if that is possible. Else each that is served keeps a reserve, half of an equal share,
/// which no other front can take; the rest goes to them by what they want.
#[must_use]
pub fn share_files<const FRONTS: usize>(files: u64, wanted: [usize; FRONTS]) -> [usize; FRONTS] {
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    let sum = |counts: &[usize; FRONTS]| counts.iter().fold(0_usize, |a, b| a.saturating_add(*b));
    if sum(&wanted) <= files {
        return wanted;
    }
    let served = wanted.iter().filter(|wanted| **wanted > 0).count();
    let reserve = files / (2 * served.max(1));
    let reserved = wanted.map(|wanted| wanted.min(reserve));
    let rest = (files - sum(&reserved)) as u128;
    let above = |front: usize| (wanted[front] - reserved[front]) as u128;
    let all = (0..FRONTS).map(above).sum::<u128>().max(1);
    std::array::from_fn(|front| {
        let more = usize::try_from(rest * above(front) / all).unwrap_or(usize::MAX);
        // A front that may have none at all could not be asked why.
        reserved[front].saturating_add(more).max(usize::from(wanted[front] > 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_files_suffice_each_front_has_what_it_wants() {
        assert_eq!(share_files(1_000_000, [65_536, 150_000, 1_024]), [65_536, 150_000, 1_024]);
    }

    #[test]
    fn where_they_do_not_each_front_keeps_a_reserve_and_none_takes_anothers() {
        for files in [1_744, 20_000, 100_000] {
            let shares = share_files(files, [65_536, 150_000, 1_024, 1_000_000]);
            assert!(shares.iter().sum::<usize>() <= files as usize, "{files}: {shares:?}");
            let reserve = files as usize / 8;
            assert!(shares.iter().all(|share| *share >= reserve.min(1_024)), "{files}: {shares:?}");
        }
        assert_eq!(share_files(10, [0, 100]), [0, 10]);
        assert_eq!(share_files(0, [5, 0]), [1, 0]);
    }
}
