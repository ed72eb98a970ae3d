//! Sizes on the command line: `64`, `1KiB`, `64k`, `1MiB`.

/// The number of bytes.
///
/// # Errors
/// Says what of the text is no size.
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1024,
        "m" | "mb" | "mib" => 1024 * 1024,
        other => return Err(format!("unknown unit '{other}' (B, KiB, MiB)")),
    };
    let number: usize = digits.parse().map_err(|_| format!("'{digits}' is not a number"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        let cases = [("0", 0), ("16", 16), ("1k", 1024), ("64KiB", 65_536), ("1MiB", 1_048_576)];
        for (text, expected) in cases {
            assert_eq!(parse_bytes(text), Ok(expected));
        }
        assert!(parse_bytes("1x").unwrap_err().contains("unit 'x'"));
        assert!(parse_bytes("k").unwrap_err().contains("not a number"));
        assert!(parse_bytes("99999999999999999999").is_err());
        assert!(parse_bytes("18446744073709551615m").unwrap_err().contains("too large"));
    }
}
