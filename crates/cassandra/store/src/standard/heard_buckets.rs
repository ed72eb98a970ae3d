//! Buckets of a queue's index that are in use, as this front-end and the others say, between two reads of the queue's head.

use crate::bucket::Bucket;
use crate::limits::HEARD_BUCKETS_MAX;

/// Those that were heard of.
#[derive(Debug, Default)]
pub(crate) struct HeardBuckets {
    pub(crate) buckets: Vec<Bucket>,
    /// There are more than are kept here: the directory has to be read.
    pub(crate) are_more: bool,
}

impl HeardBuckets {
    /// Adds those that are not among them.
    pub(crate) fn add(&mut self, buckets: &[Bucket]) {
        for bucket in buckets {
            if self.buckets.contains(bucket) {
                continue;
            }
            if self.buckets.len() == HEARD_BUCKETS_MAX {
                self.are_more = true;
                return;
            }
            self.buckets.push(*bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_there_once_and_what_is_too_much_is_known_to_be_missing() {
        let mut heard = HeardBuckets::default();
        for at in 0..HEARD_BUCKETS_MAX as i64 {
            heard.add(&[Bucket::holding(at << 20, 0), Bucket::holding(0, 0)]);
        }
        assert_eq!((heard.buckets.len(), heard.are_more), (HEARD_BUCKETS_MAX, false));
        heard.add(&[Bucket::holding(1 << 50, 0)]);
        assert_eq!((heard.buckets.len(), heard.are_more), (HEARD_BUCKETS_MAX, true));
    }
}
