//! Copying messages into a train. Most are small, and a call of memcpy costs more than their bytes.

use bytes::BytesMut;

/// Copies above this go in pieces: memcpy's `rep movsb` collapses by a factor of 12 where source and
/// target have almost the same offset in their pages (research/cmq.md, section 3.7).
const COPY_BYTES_MAX: usize = 1 << 10;

/// Appends a message with its length before it, as in a DATA.
#[inline]
pub(super) fn append_framed(bytes: &mut BytesMut, message: &[u8]) {
    let mut rest = message.len();
    while rest >= 0x80 {
        bytes.extend_from_slice(&[rest as u8 | 0x80]);
        rest >>= 7;
    }
    bytes.extend_from_slice(&[rest as u8]);
    append(bytes, message);
}

#[inline]
fn append(bytes: &mut BytesMut, message: &[u8]) {
    match message.len() {
        0..4 => message.iter().for_each(|byte| bytes.extend_from_slice(&[*byte])),
        4..8 => append_ends::<4>(bytes, message),
        8..16 => append_ends::<8>(bytes, message),
        16..32 => append_ends::<16>(bytes, message),
        32..=64 => append_ends::<32>(bytes, message),
        len if len < 2 * COPY_BYTES_MAX => bytes.extend_from_slice(message),
        _ => message.chunks(COPY_BYTES_MAX).for_each(|piece| bytes.extend_from_slice(piece)),
    }
}

/// Appends a message of `N` to 2 `N` bytes as its first and its last `N`, which may overlap: two moves
/// of a size that the compiler knows.
#[inline]
fn append_ends<const N: usize>(bytes: &mut BytesMut, message: &[u8]) {
    let start = bytes.len();
    if let (Some(head), Some(tail)) = (message.first_chunk::<N>(), message.last_chunk::<N>()) {
        bytes.extend_from_slice(head);
        bytes.truncate(start + message.len() - N);
        bytes.extend_from_slice(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::data;

    #[test]
    fn every_size_is_framed_as_the_format_says() {
        let source: Vec<u8> = (0..40_000_u32).map(|at| (at * 7 / 3) as u8).collect();
        for len in (0..300).chain([1_023, 2_047, 2_048, 16_383, 16_384, 40_000]) {
            let (mut ours, mut expected) = (BytesMut::from(&b"x"[..]), b"x".to_vec());
            append_framed(&mut ours, &source[..len]);
            data::write_message(&mut expected, &source[..len]);
            assert!(ours == expected, "{len} bytes");
        }
    }
}
