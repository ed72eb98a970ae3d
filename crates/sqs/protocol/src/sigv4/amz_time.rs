//! Times as signatures have them: to the second, in the basic format of ISO 8601.

use std::fmt;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};

/// A second since 1970, between the years 1970 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AmzTime {
    seconds: u64,
}

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The first second of the year 10000, which has no place for its year.
const END_S: u64 = 253_402_300_800;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl AmzTime {
    /// Returns the second that a time in ms since 1970 lies in.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        let seconds = ms / 1000;
        Self { seconds: if seconds < END_S { seconds } else { END_S - 1 } }
    }

    /// Returns the seconds since 1970.
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
        let date = date(number(&text[..4])?, number(&text[4..6])?, number(&text[6..8])?)?;
        let time =
            time_of_day(number(&text[9..11])?, number(&text[11..13])?, number(&text[13..15])?)?;
        Self::at(date, time)
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
        let date = date(number(year)?, month, number(day)?)?;
        let mut parts = time.split(':');
        let [hour, minute, second] = std::array::from_fn(|_| parts.next().unwrap_or(""));
        if parts.next().is_some() {
            return None;
        }
        Self::at(date, time_of_day(number(hour)?, number(minute)?, number(second)?)?)
    }

    fn at(date: Date, time: Time) -> Option<Self> {
        let seconds = u64::try_from(seconds_of(date, time)).ok()?;
        Some(Self { seconds })
    }

    /// Returns the time that is later by so many seconds.
    pub(crate) const fn plus(self, seconds: u64) -> Self {
        Self { seconds: self.seconds.saturating_add(seconds) }
    }

    /// Returns the time that is earlier by so many seconds.
    pub(crate) const fn minus(self, seconds: u64) -> Self {
        Self { seconds: self.seconds.saturating_sub(seconds) }
    }

    /// Returns `20150830T123600Z`, the first eight letters of which are the date of a scope.
    pub(crate) fn basic(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for AmzTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Later than any that can be made, in the year 9999, by `plus` alone.
        let seconds = SignedDuration::from_secs(i64::try_from(self.seconds).unwrap_or(i64::MAX));
        let at = EPOCH.checked_add(seconds).unwrap_or(DateTime::MAX);
        write!(f, "{}", at.strftime("%Y%m%dT%H%M%SZ"))
    }
}

/// Parses a number of digits only: no sign, no blank.
pub(crate) fn number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Returns a day of the Gregorian calendar; `None` if there is no such day.
pub(crate) fn date(year: u64, month: u64, day: u64) -> Option<Date> {
    let year = i16::try_from(year).ok()?;
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Returns a time of day; a leap second counts as the one before it.
pub(crate) fn time_of_day(hour: u64, minute: u64, second: u64) -> Option<Time> {
    let second = if second == 60 { 59 } else { i8::try_from(second).ok()? };
    Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, second, 0).ok()
}

/// Returns the seconds since 1970 in UTC, negative before.
pub(crate) fn seconds_of(date: Date, time: Time) -> i64 {
    date.to_datetime(time).duration_since(EPOCH).as_secs()
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
