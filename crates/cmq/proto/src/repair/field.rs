//! The field GF(2^8): bytes, whose sum is XOR and whose product is that of polynomials, modulo
//! x^8 + x^4 + x^3 + x^2 + 1.

/// The low eight bits of the modulus.
const MODULUS: u8 = 0x1D;

/// Bytes that are multiplied side by side: two or more vector registers on any processor.
const LANES: usize = 32;

/// Powers of x, which generates all elements but 0, and which power each of those is.
struct Tables {
    powers: [u8; 255],
    logarithms: [u8; 256],
}

static TABLES: Tables = {
    let mut tables = Tables { powers: [0; 255], logarithms: [0; 256] };
    let mut power = 1;
    let mut at = 0;
    while at < 255 {
        tables.powers[at] = power;
        tables.logarithms[power as usize] = at as u8;
        power = times_x(power);
        at += 1;
    }
    tables
};

/// Returns the product of two elements.
pub(super) fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let sum = usize::from(TABLES.logarithms[usize::from(a)])
        + usize::from(TABLES.logarithms[usize::from(b)]);
    TABLES.powers[sum % 255]
}

/// Returns the element whose product with `a` is 1. `a` is not 0.
pub(super) fn inverse(a: u8) -> u8 {
    debug_assert!(a != 0, "0 has no inverse");
    TABLES.powers[(255 - usize::from(TABLES.logarithms[usize::from(a)])) % 255]
}

/// Adds `factor` times `from` to `to`, byte by byte. `to` is at least as long.
pub(super) fn add_product(to: &mut [u8], from: &[u8], factor: u8) {
    debug_assert!(to.len() >= from.len(), "{} bytes to {}", from.len(), to.len());
    if factor == 1 {
        for (to, from) in to.iter_mut().zip(from) {
            *to ^= from;
        }
        return;
    }
    let masks = masks(factor);
    let (from_lanes, from_rest) = from.as_chunks::<LANES>();
    let (to_lanes, to_rest) = to.split_at_mut(from_lanes.len() * LANES);
    for (to, from) in to_lanes.as_chunks_mut::<LANES>().0.iter_mut().zip(from_lanes) {
        add_lanes(to, from, &masks);
    }
    let mut last = [0; LANES];
    let mut sum = [0; LANES];
    last[..from_rest.len()].copy_from_slice(from_rest);
    add_lanes(&mut sum, &last, &masks);
    for (to, sum) in to_rest.iter_mut().zip(&sum[..from_rest.len()]) {
        *to ^= sum;
    }
}

/// Horner's rule over the factor's bits, the same steps for every byte: the compiler makes vector
/// instructions of it.
#[inline]
fn add_lanes(to: &mut [u8; LANES], from: &[u8; LANES], masks: &[u8; 8]) {
    let mut sum = [0; LANES];
    for mask in masks {
        for (sum, from) in sum.iter_mut().zip(from) {
            *sum = times_x(*sum) ^ (from & mask);
        }
    }
    for (to, sum) in to.iter_mut().zip(&sum) {
        *to ^= sum;
    }
}

/// Returns a mask for each bit, the high one first: all ones if it is set.
fn masks(factor: u8) -> [u8; 8] {
    core::array::from_fn(|at| if factor >> (7 - at) & 1 == 1 { 0xFF } else { 0 })
}

const fn times_x(a: u8) -> u8 {
    // The arithmetic shift makes a mask of the high bit.
    (a << 1) ^ ((a as i8 >> 7) as u8 & MODULUS)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_a_field() {
        let mut powers = std::collections::BTreeSet::new();
        let mut power = 1;
        for _ in 0..255 {
            assert!(powers.insert(power), "x generates all of the units");
            power = product(power, 2);
        }
        for a in 0..=255 {
            assert_eq!(product(a, 2), times_x(a));
            assert_eq!(product(a, 1), a);
            assert_eq!(product(a, 0), 0);
            if a != 0 {
                assert_eq!(product(a, inverse(a)), 1);
            }
            for b in 0..=255 {
                assert_eq!(product(a, b), product(b, a));
                assert_eq!(product(a, b ^ 0x53), product(a, b) ^ product(a, 0x53));
                assert_eq!(product(product(a, b), 7), product(a, product(b, 7)));
            }
        }
    }

    proptest! {
        #[test]
        fn many_products_are_as_one(from in vec(any::<u8>(), 0..200), more in 0_usize..70, factor: u8) {
            let mut to: Vec<u8> = (0..from.len() + more).map(|at| at as u8).collect();
            let before = to.clone();
            add_product(&mut to, &from, factor);
            for at in 0..to.len() {
                let added = from.get(at).map_or(0, |byte| product(*byte, factor));
                prop_assert_eq!(to[at], before[at] ^ added);
            }
        }
    }
}
