//! Sizes as people write them: `64MiB`, `1 GiB`, `500kB`, or plain bytes.

const UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ByteSizeError {
    /// What follows the digits.
    #[error("unknown unit '{0}' (B, KiB, MiB, GiB, kB, MB, GB)")]
    Unit(String),
    /// What stands before the unit.
    #[error("'{0}' is not a number")]
    Number(String),
    /// More than 64 bits of bytes.
    #[error("{0} is too large")]
    TooLarge(String),
}

/// Parses a number of bytes with an optional unit, in letters of either case.
///
/// # Errors
/// [`ByteSizeError`].
pub fn parse(text: &str) -> Result<u64, ByteSizeError> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let known = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let (_, factor) = known.ok_or_else(|| ByteSizeError::Unit(unit.to_owned()))?;
    if number.is_empty() {
        return Err(ByteSizeError::Number(number.to_owned()));
    }
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
    bytes.ok_or_else(|| ByteSizeError::TooLarge(text.to_owned()))
}

/// Returns the shortest exact form with a binary unit.
#[must_use]
pub fn format(bytes: u64) -> String {
    let unit = UNITS[1..4].iter().rev().find(|(_, size)| bytes != 0 && bytes.is_multiple_of(*size));
    match unit {
        Some((name, size)) => format!("{}{name}", bytes / size),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("16B", 16),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("1GiB", 1 << 30),
            ("5kB", 5_000),
            ("5KB", 5_000),
            ("64MB", 64_000_000),
            ("2GB", 2_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "1.5MiB", "-1", "1 XB", "99999999999GiB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_is_shown_in_the_largest_unit_that_divides_it() {
        for (bytes, text) in [
            (0, "0"),
            (1_000, "1000"),
            (128 << 10, "128KiB"),
            (64 << 20, "64MiB"),
            (1 << 30, "1GiB"),
        ] {
            assert_eq!(format(bytes), text);
            assert_eq!(parse(text), Ok(bytes));
        }
    }
}
