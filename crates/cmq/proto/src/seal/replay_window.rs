//! Which numbers were here.

/// Remembers the last numbers, so that each is taken once. What is older than the window counts as
/// taken.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// A bit a number, at the number's remainder.
    words: Box<[u64]>,
    /// One past the highest number that was taken.
    highest: u64,
}

impl ReplayWindow {
    /// Returns a window of `numbers`, which is a multiple of 64.
    #[must_use]
    pub fn new(numbers: usize) -> Self {
        debug_assert!(numbers > 0 && numbers.is_multiple_of(64), "{numbers} numbers are no words");
        Self { words: vec![0; numbers / 64].into_boxed_slice(), highest: 0 }
    }

    /// Returns whether the number is new.
    #[must_use]
    pub fn is_new(&self, number: u64) -> bool {
        if number >= self.highest {
            return true;
        }
        let (word, bit) = self.place(number);
        self.highest - number <= self.numbers() && self.words[word] & bit == 0
    }

    /// Takes the number. Returns whether it was new.
    pub fn take(&mut self, number: u64) -> bool {
        if !self.is_new(number) {
            return false;
        }
        if number >= self.highest {
            self.forget_up_to(number);
            self.highest = number + 1;
        }
        let (word, bit) = self.place(number);
        self.words[word] |= bit;
        true
    }

    /// Clears the bits of the numbers from `highest` to `number`: they are those of numbers that fall
    /// out of the window.
    fn forget_up_to(&mut self, number: u64) {
        if number - self.highest >= self.numbers() {
            self.words.fill(0);
            return;
        }
        let mut at = self.highest;
        while at <= number {
            let (word, bit) = self.place(at);
            if bit == 1 && number - at >= 64 {
                self.words[word] = 0;
                at += 64;
            } else {
                self.words[word] &= !bit;
                at += 1;
            }
        }
    }

    fn numbers(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    fn place(&self, number: u64) -> (usize, u64) {
        let at = number % self.numbers();
        ((at / 64) as usize, 1 << (at % 64))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_number_is_taken_once_and_none_that_is_too_old(
            steps in vec((0_u64..3, 0_u64..400, 0_u64..70), 1..400),
        ) {
            let mut window = ReplayWindow::new(128);
            let mut taken = BTreeSet::new();
            let mut middle = 0_u64;
            for (direction, far, near) in steps {
                middle = match direction {
                    0 => middle + near,
                    1 => middle.saturating_sub(far),
                    _ => middle + far * u64::from(near == 0),
                };
                let number = middle;
                let highest = taken.last().map_or(0, |last| last + 1);
                let expected = number + 128 >= highest && !taken.contains(&number);
                prop_assert_eq!(window.is_new(number), expected, "{}", number);
                prop_assert_eq!(window.take(number), expected, "{}", number);
                prop_assert!(!window.is_new(number));
                if expected {
                    taken.insert(number);
                }
            }
        }
    }
}
