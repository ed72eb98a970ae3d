//! Figures as people read them.

/// Returns a duration with three significant digits and its unit.
pub(crate) fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 1.0 => format!("{:.0} µs", ms * 1e3),
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 100.0 => format!("{ms:.1} ms"),
        ms if ms < 10_000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

/// Returns a whole number with commas between its thousands.
pub(crate) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_commas() {
        let cases = [
            (0.0, "0"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (412_345.6, "412,346"),
            (1e7, "10,000,000"),
        ];
        for (number, expected) in cases {
            assert_eq!(thousands(number), expected);
        }
    }

    #[test]
    fn durations_get_a_fitting_unit() {
        let cases = [
            (0.0123, "12 µs"),
            (1.234, "1.23 ms"),
            (12.34, "12.3 ms"),
            (171.0, "171 ms"),
            (12_345.0, "12.3 s"),
        ];
        for (ms, expected) in cases {
            assert_eq!(milliseconds(ms), expected);
        }
    }
}
