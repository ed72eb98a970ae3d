//! The code: what a parity has of each datagram, and how the missing ones follow from parities.

use crate::limits::{REPAIR_DATA_MAX, REPAIR_PARITY_MAX};
use crate::repair::field::{inverse, product};

/// The parities' points begin here; those of the data are 0 and up, so that no two are the same.
const PARITY_POINTS: u8 = 128;

const _: () = assert!(REPAIR_DATA_MAX <= PARITY_POINTS && REPAIR_PARITY_MAX <= 255 - PARITY_POINTS);

/// Returns by what datagram `data` of a group is multiplied in parity `index`.
///
/// Cauchy's matrix 1 / (x ⊕ y) with the points x of the parities and y of the data; every square part
/// of it can be inverted. Each column is divided by its first element, which keeps that and makes the
/// first parity a plain XOR.
pub(super) fn coefficient(index: u8, data: u8) -> u8 {
    let first = PARITY_POINTS ^ data;
    let own = (PARITY_POINTS + index) ^ data;
    product(first, inverse(own))
}

/// Returns the inverse of the square matrix of the coefficients of `parities` and `missing`, which
/// are equally many and each different: row k says how the k-th missing datagram is made of what is
/// left of the parities.
pub(super) fn solve(parities: &[u8], missing: &[u8]) -> Vec<Vec<u8>> {
    let size = missing.len();
    debug_assert_eq!(parities.len(), size, "a square matrix");
    // Gauss and Jordan: the same steps that make the unit matrix of the one make the inverse of the
    // other.
    let mut matrix: Vec<Vec<u8>> = parities
        .iter()
        .map(|&index| missing.iter().map(|&data| coefficient(index, data)).collect())
        .collect();
    let mut result: Vec<Vec<u8>> =
        (0..size).map(|row| (0..size).map(|column| u8::from(row == column)).collect()).collect();
    for column in 0..size {
        let pivot = (column..size)
            .find(|&row| matrix[row][column] != 0)
            .expect("every square part of a Cauchy matrix can be inverted");
        matrix.swap(column, pivot);
        result.swap(column, pivot);
        let scale = inverse(matrix[column][column]);
        for cell in matrix[column].iter_mut().chain(&mut result[column]) {
            *cell = product(*cell, scale);
        }
        for row in (0..size).filter(|row| *row != column) {
            let factor = matrix[row][column];
            for at in 0..size {
                matrix[row][at] ^= product(factor, matrix[column][at]);
                result[row][at] ^= product(factor, result[column][at]);
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_parity_is_the_xor() {
        assert!((0..REPAIR_DATA_MAX).all(|data| coefficient(0, data) == 1));
    }

    #[test]
    fn no_coefficient_is_zero_and_every_two_parities_differ() {
        for data in 0..REPAIR_DATA_MAX {
            let column: std::collections::BTreeSet<u8> =
                (0..REPAIR_PARITY_MAX).map(|index| coefficient(index, data)).collect();
            assert_eq!(column.len(), usize::from(REPAIR_PARITY_MAX));
            assert!(!column.contains(&0));
        }
    }

    #[test]
    fn the_solution_times_the_coefficients_is_the_unit_matrix() {
        let mut random = fastrand::Rng::with_seed(1);
        for size in 1..=usize::from(REPAIR_PARITY_MAX) {
            let mut parities: Vec<u8> = (0..REPAIR_PARITY_MAX).collect();
            let mut missing: Vec<u8> = (0..REPAIR_DATA_MAX).collect();
            random.shuffle(&mut parities);
            random.shuffle(&mut missing);
            let solution = solve(&parities[..size], &missing[..size]);
            for (row, weights) in solution.iter().enumerate() {
                for (column, data) in missing[..size].iter().enumerate() {
                    let sum = weights
                        .iter()
                        .zip(&parities)
                        .fold(0, |sum, (w, index)| sum ^ product(*w, coefficient(*index, *data)));
                    assert_eq!(sum, u8::from(row == column), "{size}: {row}, {column}");
                }
            }
        }
    }
}
