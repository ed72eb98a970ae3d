//! Times as signatures have them: to the second, in the basic format of ISO 8601.

use std::fmt;

/// A second since 1970, between the years 1970 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AmzTime {
    seconds: u64,
}

const DAY_S: u64 = 24 * 60 * 60;

/// The first second of the year 10000, which has no place for its year.
const END_S: u64 = 253_402_300_800;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl AmzTime {
    /// The second that a time in ms since 1970 lies in.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        let seconds = ms / 1000;
        Self { seconds: if seconds < END_S { seconds } else { END_S - 1 } }
    }

    /// Seconds since 1970.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.seconds
    }

    /// Reads `20150830T123600Z`.
    pub(crate) fn parse_basic(text: &str) -> Option<Self> {
        let bytes: &[u8; 16] = text.as_bytes().try_into().ok()?;
        if bytes[8] != b'T' || bytes[15] != b'Z' || !text.is_ascii() {
            return None;
        }
        let days = days_of(number(&text[..4])?, number(&text[4..6])?, number(&text[6..8])?)?;
        let second =
            seconds_of_day(number(&text[9..11])?, number(&text[11..13])?, number(&text[13..15])?)?;
        Self::from_parts(days, second)
    }

    /// Reads `Sun, 30 Aug 2015 12:36:00 GMT`, the header `Date` of HTTP (RFC 9110 §5.6.7). That the
    /// day of the week fits is not checked.
    pub(crate) fn parse_http(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once(", ")?;
        let mut words = rest.split(' ');
        let [day, month, year, time, zone] = std::array::from_fn(|_| words.next().unwrap_or(""));
        if zone != "GMT" || words.next().is_some() || year.len() != 4 {
            return None;
        }
        let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
        let days = days_of(number(year)?, month, number(day)?)?;
        let mut parts = time.split(':');
        let [hour, minute, second] = std::array::from_fn(|_| parts.next().unwrap_or(""));
        if parts.next().is_some() {
            return None;
        }
        Self::from_parts(days, seconds_of_day(number(hour)?, number(minute)?, number(second)?)?)
    }

    fn from_parts(days: i64, second_of_day: u64) -> Option<Self> {
        let seconds = u64::try_from(days).ok()? * DAY_S + second_of_day;
        Some(Self { seconds })
    }

    /// Later by so many seconds.
    pub(crate) const fn plus(self, seconds: u64) -> Self {
        Self { seconds: self.seconds.saturating_add(seconds) }
    }

    /// Earlier by so many seconds.
    pub(crate) const fn minus(self, seconds: u64) -> Self {
        Self { seconds: self.seconds.saturating_sub(seconds) }
    }

    /// `20150830T123600Z`, the first eight letters of which are the date of a scope.
    pub(crate) fn basic(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for AmzTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of(self.seconds / DAY_S);
        let second = self.seconds % DAY_S;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }
}

/// A number of digits only: no sign, no blank.
pub(crate) fn number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Days since 1970 of a day of the Gregorian calendar, negative before; `None` if there is no such
/// day. Years are counted from March, so that the leap day is the last of its year.
pub(crate) fn days_of(year: u64, month: u64, day: u64) -> Option<i64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > length || year > 9999 {
        return None;
    }
    // A year more, so that January of the year 0 does not go below it.
    let march_year = year + 400 - u64::from(month <= 2);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days =
        march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400 + day_of_year;
    // 1 January 1970, by the same count.
    Some(days as i64 - (719_468 + 146_097))
}

/// The second of a day; a leap second counts as the one before it.
pub(crate) const fn seconds_of_day(hour: u64, minute: u64, second: u64) -> Option<u64> {
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let second = if second == 60 { 59 } else { second };
    Some((hour * 60 + minute) * 60 + second)
}

/// Year, month and day of a day since 1970.
const fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day = days % 146_097;
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + if month <= 2 { 1 } else { 0 };
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_in_the_basic_format() {
        let cases = [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (1_440_938_160, "20150830T123600Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
            (END_S - 1, "99991231T235959Z"),
        ];
        for (seconds, text) in cases {
            let time = AmzTime::from_millis(seconds * 1000 + 999);
            assert_eq!(time.to_string(), text);
            assert_eq!(AmzTime::parse_basic(text), Some(time), "{text}");
        }
        assert_eq!(AmzTime::from_millis(u64::MAX).to_string(), "99991231T235959Z");
    }

    #[test]
    fn every_day_has_its_number_and_every_number_its_day() {
        for days in 0..END_S / DAY_S {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), Some(days as i64), "{year}-{month}-{day}");
        }
        assert_eq!(days_of(1969, 12, 31), Some(-1));
    }

    #[test]
    fn what_is_no_time_is_not_read() {
        let bad = [
            "",
            "20150830",
            "20150830T123600",
            "20150830t123600Z",
            "20150230T123600Z",
            "20150830T243600Z",
            "20150830T126000Z",
            "20151330T123600Z",
            "+0150830T123600Z",
            "2015083 T123600Z",
            "2015-8-30T12:36Z",
            "20150830T123600Zx",
            "ሴ2345678T12345Z",
            "19691231T235959Z",
        ];
        for text in bad {
            assert_eq!(AmzTime::parse_basic(text), None, "{text}");
        }
    }

    #[test]
    fn the_date_of_http_is_read_too() {
        let read = |text| AmzTime::parse_http(text).map(AmzTime::basic);
        assert_eq!(read("Sun, 30 Aug 2015 12:36:00 GMT").as_deref(), Some("20150830T123600Z"));
        for bad in [
            "",
            "Sun, 30 Aug 2015 12:36:00",
            "Sun, 30 Aug 2015 12:36:00 CET",
            "Sun, 31 Feb 2015 12:36:00 GMT",
            "Sunday, 30-Aug-15 12:36:00 GMT",
            "Sun, 30 Aug 2015 12:36 GMT",
            "Sun, 30 Aug 2015 12:36:00 GMT x",
            "Sun, 30 August 2015 12:36:00 GMT",
            "Sun, 30 Aug 2015 12:36:00:00 GMT",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
