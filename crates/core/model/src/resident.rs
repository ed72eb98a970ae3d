//! What messages take in memory, where several queues hold one body.

use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes of messages, as each of their holders counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// All of them.
    pub all: usize,
    /// Of these, bodies of which [`SharedBodies`] has a count of its own.
    pub shared: usize,
}

impl Resident {
    /// Returns what is left when each of the shared bodies is there once only, and there are so many bytes
    /// of them.
    #[must_use]
    pub fn with_shared_once(self, shared_bytes: usize) -> usize {
        self.all - self.shared + shared_bytes.min(self.shared)
    }
}

impl Add for Resident {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { all: self.all + other.all, shared: self.shared + other.shared }
    }
}

impl Sub for Resident {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { all: self.all - other.all, shared: self.shared - other.shared }
    }
}

impl AddAssign for Resident {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Resident {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// Bytes of large bodies that several queues hold: each once, from when it was published until nobody holds it.
#[derive(Clone, Debug, Default)]
pub struct SharedBodies(Arc<AtomicUsize>);

impl SharedBodies {
    /// Returns the bytes of all that are there.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a body until its last copy is dropped.
    pub(crate) fn count(&self, body: Bytes) -> Bytes {
        self.0.fetch_add(body.len(), Ordering::Relaxed);
        Bytes::from_owner(Counted { body, total: Arc::clone(&self.0) })
    }
}

struct Counted {
    body: Bytes,
    total: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.total.fetch_sub(self.body.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_counts_until_its_last_copy_is_gone() {
        let bodies = SharedBodies::default();
        let first = bodies.count(Bytes::from(vec![1; 20_000]));
        let (copy, part) = (first.clone(), first.slice(..10));
        drop((first, copy));
        assert_eq!((bodies.bytes(), &part[..]), (20_000, &[1; 10][..]));
        drop(part);
        assert_eq!(bodies.bytes(), 0);
    }

    #[test]
    fn shared_bodies_are_taken_once_and_never_for_more_than_their_holders_count() {
        let resident = Resident { all: 1_000, shared: 900 };
        assert_eq!(resident.with_shared_once(300), 400);
        assert_eq!(resident.with_shared_once(5_000), 1_000, "others hold the rest");
        assert_eq!(resident - resident, Resident::default());
    }
}
