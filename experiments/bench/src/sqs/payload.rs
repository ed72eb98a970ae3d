//! Payloads that tell who sent them, when in the order, and whether they arrived whole.

use fastrand::Rng;

/// Bytes before the random ones: sender, place among the sender's, place among the queue's, and the
/// CRC32C of all the rest, each as eight hexadecimal digits.
const HEAD: usize = 32;
/// Shortest payload: the head and enough random bytes to be different from any other.
pub(crate) const SIZE_MIN: usize = 64;

/// 64 characters that neither JSON nor SQS objects to.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Which message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tag {
    /// The sending thread, counted within its queue.
    pub sender: u32,
    /// The message, counted within its sender's.
    pub of_sender: u32,
    /// The message, counted within its queue's in the order in which sending began.
    pub of_queue: u32,
}

/// Draws whether something happens that has this probability. What cannot happen draws nothing, so that a failure
/// that is not asked for does not move the sequence.
pub(crate) fn happens(rng: &mut Rng, probability: f64) -> bool {
    probability > 0.0 && rng.f64() < probability
}

/// Returns a payload of `size` bytes.
pub(crate) fn make(tag: Tag, size: usize, rng: &mut Rng) -> String {
    debug_assert!(size >= SIZE_MIN, "{size}");
    let mut rest = format!("{:08x}{:08x}{:08x}", tag.sender, tag.of_sender, tag.of_queue);
    rest.reserve(size);
    while rest.len() < size - 8 {
        // Ten characters of six bits from each draw.
        let drawn = rng.u64(..);
        let wanted = (size - 8 - rest.len()).min(10);
        rest.extend((0..wanted).map(|at| char::from(ALPHABET[(drawn >> (6 * at)) as usize % 64])));
    }
    format!("{:08x}{rest}", crc32c::crc32c(rest.as_bytes()))
}

/// Returns the tag, if the payload is whole.
pub(crate) fn check(text: &str) -> Option<Tag> {
    if text.len() < HEAD || !text.is_ascii() {
        return None;
    }
    let number = |at: usize| u32::from_str_radix(&text[at..at + 8], 16).ok();
    if number(0)? != crc32c::crc32c(&text.as_bytes()[8..]) {
        return None;
    }
    Some(Tag { sender: number(8)?, of_sender: number(16)?, of_queue: number(24)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag { sender: 2, of_sender: 70_000, of_queue: 210_001 };

    #[test]
    fn a_payload_tells_which_message_it_is() {
        for size in [SIZE_MIN, 65, 2_048] {
            let text = make(TAG, size, &mut Rng::with_seed(5));
            assert_eq!((text.len(), check(&text)), (size, Some(TAG)));
        }
        let other = make(TAG, 100, &mut Rng::with_seed(6));
        assert_ne!(make(TAG, 100, &mut Rng::with_seed(5)), other, "it is random");
    }

    #[test]
    fn a_change_anywhere_is_seen() {
        let text = make(TAG, SIZE_MIN, &mut Rng::with_seed(5));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(check(str::from_utf8(&bytes).unwrap()), None, "{at}");
        }
        assert_eq!(check(&text[..text.len() - 1]), None);
        assert_eq!(check("short"), None);
        assert_eq!(check(&"ü".repeat(40)), None);
    }

    #[test]
    fn failures_are_as_frequent_as_asked() {
        let mut rng = Rng::with_seed(9);
        let fallen = (0..100_000).filter(|_| happens(&mut rng, 0.1)).count();
        assert!((9_500..10_500).contains(&fallen), "{fallen}");
        let before = rng.clone().u64(..);
        assert!(!happens(&mut rng, 0.0));
        assert_eq!(rng.u64(..), before, "probability 0 draws nothing");
    }
}
