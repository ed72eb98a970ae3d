//! Numbers of as many bytes as they need: seven bits a byte, the low ones first, the high bit of a
//! byte set if another follows (LEB128).

use bytes::BufMut;

use crate::wire::Malformed;

/// Returns how many bytes `value` takes.
#[must_use]
pub const fn encoded_bytes(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Appends `value`.
#[inline]
pub fn write(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// Takes a number of at most 32 bits off the front of `bytes`.
///
/// # Errors
/// The bytes end within it, or it is larger.
#[inline]
pub fn read_u32(bytes: &mut &[u8]) -> Result<u32, Malformed> {
    // Nearly every length is below 128.
    match bytes.split_first() {
        Some((&first, rest)) if first < 0x80 => {
            *bytes = rest;
            Ok(u32::from(first))
        }
        _ => u32::try_from(read_u64(bytes)?).map_err(|_| Malformed::Varint),
    }
}

/// Takes a number of at most 64 bits off the front of `bytes`.
///
/// # Errors
/// The bytes end within it, or it is larger.
pub fn read_u64(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        let part = u64::from(byte & 0x7F);
        if at == 9 && part > 1 {
            return Err(Malformed::Varint);
        }
        value |= part << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Ok(value);
        }
    }
    Err(Malformed::Varint)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_comes_back_as_it_was(value in any::<u64>(), shift in 0_u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            write(&mut bytes, value);
            prop_assert_eq!(bytes.len(), encoded_bytes(value));
            bytes.push(0xAA);
            let mut rest = &bytes[..];
            prop_assert_eq!(read_u64(&mut rest), Ok(value));
            prop_assert_eq!(rest, &[0xAA]);
            let mut rest = &bytes[..];
            prop_assert_eq!(read_u32(&mut rest).ok(), u32::try_from(value).ok());
        }
    }

    #[test]
    fn what_is_cut_off_or_too_large_is_no_number() {
        let cases: [&[u8]; 5] = [
            &[],
            &[0x80],
            &[0xFF; 9],
            &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
        ];
        for bytes in cases {
            assert_eq!(read_u64(&mut &*bytes), Err(Malformed::Varint), "{bytes:x?}");
        }
        assert_eq!(read_u32(&mut &[0x80, 0x80, 0x80, 0x80, 0x10][..]), Err(Malformed::Varint));
        assert_eq!(read_u32(&mut &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F][..]), Ok(u32::MAX));
    }
}
