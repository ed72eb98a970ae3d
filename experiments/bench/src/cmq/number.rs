//! A message's number, in its first four bytes.

/// The fewest bytes of a message.
pub(crate) const NUMBER_BYTES: usize = 4;

/// Numbers begin again after so many.
const NUMBERS: u64 = 1 << 28;

/// Writes the number of a message. Seven bits a byte: what is sent is text, as the original library's
/// `String` queues want it.
pub(crate) fn write(message: &mut [u8], number: u64) {
    for (place, byte) in message.iter_mut().take(NUMBER_BYTES).enumerate() {
        *byte = (number >> (7 * place)) as u8 & 0x7F;
    }
}

/// Returns how far behind the message `base` this one is; none if it is too short to have a number.
pub(crate) fn offset(message: &[u8], base: u64) -> Option<u64> {
    let bytes = message.first_chunk::<NUMBER_BYTES>()?;
    let number = bytes.iter().rev().fold(0, |number, byte| number << 7 | u64::from(*byte));
    Some(number.wrapping_sub(base) % NUMBERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back_as_its_distance_from_the_base() {
        let mut message = [b'x'; 6];
        for (number, base) in
            [(0, 0), (1_000, 1_000), (1_999, 1_000), (NUMBERS + 3, 3), (NUMBERS, 5)]
        {
            write(&mut message, number);
            let distance = number.wrapping_sub(base) % NUMBERS;
            assert_eq!(offset(&message, base), Some(distance));
            assert!(message.is_ascii());
        }
        assert_eq!(&message[4..], b"xx");
        assert_eq!(offset(b"abc", 0), None);
    }
}
