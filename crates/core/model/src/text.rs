//! Comparing text on hot paths.

/// Returns whether two texts are equal, quickly also when they are empty.
///
/// `==` calls `memcmp` even for no bytes, and an empty `String` or `Box<str>` points to address 1:
/// on processors with AVX-512 the C library then makes a masked load of an unmapped page, whose
/// suppressed fault costs some 70 ns. The name of the default exchange is empty.
#[inline]
#[must_use]
pub fn same_text(a: &str, b: &str) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_when_their_bytes_are() {
        let texts = ["", "a", "b", "ab"];
        for a in texts {
            for b in texts {
                assert_eq!(same_text(a, b), a == b, "{a:?} and {b:?}");
            }
        }
    }
}
