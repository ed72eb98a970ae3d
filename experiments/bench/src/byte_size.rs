//! Sizes on the command line: `64`, `1KiB`, `64k`, `1MiB`, `5kB`.

/// The broker's settings have the same units (`crates/server/src/config/byte_size.rs`). Here a letter alone is the binary
/// unit, as in `dd` and `fio`.
const UNITS: [(&str, usize); 11] = [
    ("", 1),
    ("B", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// The number of bytes.
///
/// # Errors
/// Says what of the text is no size.
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
        return Err(format!("unknown unit '{unit}' (B, KiB, MiB, GiB, kB, MB, GB)"));
    };
    let number: usize = digits.parse().map_err(|_| format!("'{digits}' is not a number"))?;
    number.checked_mul(*factor).ok_or_else(|| format!("{text} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, expected) in [
            ("0", 0),
            ("16", 16),
            ("16B", 16),
            ("1k", 1_024),
            ("2m", 2 << 20),
            ("1g", 1 << 30),
            ("64KiB", 65_536),
            ("1MiB", 1_048_576),
            ("1gib", 1 << 30),
        ] {
            assert_eq!(parse_bytes(text), Ok(expected), "{text}");
        }
        assert!(parse_bytes("1x").unwrap_err().contains("unit 'x'"));
        assert!(parse_bytes("k").unwrap_err().contains("not a number"));
        assert!(parse_bytes("99999999999999999999").is_err());
        assert!(parse_bytes("18446744073709551615m").unwrap_err().contains("too large"));
    }

    #[test]
    fn decimal_units_are_decimal_as_in_the_brokers_settings() {
        for (text, expected) in
            [("5kB", 5_000), ("5KB", 5_000), ("64MB", 64_000_000), ("2GB", 2_000_000_000)]
        {
            assert_eq!(parse_bytes(text), Ok(expected), "{text}");
        }
    }
}
