//! Sizes on the command line: `64`, `1KiB`, `64k`, `1MiB`, `5kB`.

use quelea_model::byte_size;

/// Parses a number of bytes, as in the broker's settings; a letter alone is the binary unit, as in
/// `dd` and `fio`.
///
/// # Errors
/// Says what of the text is no size.
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    let is_letter_alone = matches!(text.as_bytes(), [number @ .., unit]
        if b"kmgKMG".contains(unit) && number.iter().all(u8::is_ascii_digit));
    let whole = if is_letter_alone { &format!("{text}iB") } else { text };
    let bytes = byte_size::parse(whole).map_err(|error| error.to_string())?;
    usize::try_from(bytes).map_err(|_| format!("{text} is too large"))
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
