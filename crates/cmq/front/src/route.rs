//! Where messages to a mailbox are published.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

/// The longest routing key: AMQP's short string.
const KEY_BYTES_MAX: usize = 255;

/// Digits of the largest mailbox.
const MAILBOX_DIGITS_MAX: usize = 20;

const PLACE: &str = "{mailbox}";

/// Where the messages to some mailboxes go.
#[derive(Clone, Debug)]
pub struct Route {
    /// Which ones.
    pub mailboxes: Mailboxes,
    /// The exchange's virtual host.
    pub vhost: Arc<str>,
    /// The exchange; empty for the default one.
    pub exchange: Arc<str>,
    /// The routing key.
    pub routing_key: KeyTemplate,
    /// Whether the messages ask to survive a restart.
    pub persistent: bool,
}

/// A mailbox, or all from one to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailboxes(RangeInclusive<u64>);

/// Why a text names no mailboxes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a mailbox, as in 7, nor a range of them, as in 0-15")]
pub struct MailboxesError(String);

impl Mailboxes {
    /// Every mailbox.
    pub const ALL: Self = Self(0..=u64::MAX);
}

impl FromStr for Mailboxes {
    type Err = MailboxesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(MailboxesError(text.to_owned())),
        }
    }
}

/// A routing key in which `{mailbox}` stands for the mailbox's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate(Box<str>);

/// Why a text is no routing key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyTemplateError {
    /// Something else in braces.
    #[error("{0:?} has other braces than {{mailbox}}")]
    Braces(String),
    /// With the largest mailbox's number it would not be a routing key.
    #[error("{text:?} may have {bytes} bytes, the limit is {KEY_BYTES_MAX}")]
    TooLong {
        /// The template.
        text: String,
        /// Its longest key's.
        bytes: usize,
    },
}

impl KeyTemplate {
    /// Returns the key for a mailbox.
    #[must_use]
    pub fn key(&self, mailbox: u64) -> String {
        self.0.replace(PLACE, &mailbox.to_string())
    }
}

impl FromStr for KeyTemplate {
    type Err = KeyTemplateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let places = text.matches(PLACE).count();
        let rest = text.replace(PLACE, "");
        if rest.contains(['{', '}']) {
            return Err(KeyTemplateError::Braces(text.to_owned()));
        }
        let bytes = rest.len() + places * MAILBOX_DIGITS_MAX;
        if bytes > KEY_BYTES_MAX {
            return Err(KeyTemplateError::TooLong { text: text.to_owned(), bytes });
        }
        Ok(Self(text.into()))
    }
}

/// All routes.
#[derive(Debug)]
pub(crate) struct Routes {
    listed: Vec<Route>,
    others: Route,
}

impl Routes {
    pub(crate) const fn new(listed: Vec<Route>, others: Route) -> Self {
        Self { listed, others }
    }

    /// Returns the number of the first route that fits; the one for all others has the last number.
    pub(crate) fn find(&self, mailbox: u64) -> usize {
        let fits = |route: &Route| route.mailboxes.0.contains(&mailbox);
        self.listed.iter().position(fits).unwrap_or(self.listed.len())
    }

    pub(crate) fn get(&self, number: usize) -> &Route {
        self.listed.get(number).unwrap_or(&self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes_are_one_or_a_range() {
        let range = |text: &str| text.parse::<Mailboxes>().map(|mailboxes| mailboxes.0);
        assert_eq!(range("7"), Ok(7..=7));
        assert_eq!(range("0-15"), Ok(0..=15));
        assert_eq!(range("3 - 3"), Ok(3..=3));
        assert_eq!(range("0-18446744073709551615"), Ok(0..=u64::MAX));
        for wrong in ["", "-", "-1", "1-", "5-4", "a", "1-2-3", "18446744073709551616"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_has_the_mailbox_in_its_place() {
        let key = |text: &str, mailbox| text.parse::<KeyTemplate>().unwrap().key(mailbox);
        assert_eq!(key("cmq.{mailbox}", 7), "cmq.7");
        assert_eq!(key("{mailbox}.{mailbox}", 0), "0.0");
        assert_eq!(key("fixed", 7), "fixed");
        assert_eq!(key("", 7), "");
        for wrong in ["{box}", "{mailbox", "a}", "{{mailbox}}"] {
            let error = wrong.parse::<KeyTemplate>().unwrap_err();
            assert!(matches!(error, KeyTemplateError::Braces(_)), "{wrong}");
        }
        assert!(format!("{}{PLACE}", "k".repeat(235)).parse::<KeyTemplate>().is_ok());
        let long = format!("{}{PLACE}", "k".repeat(236)).parse::<KeyTemplate>();
        assert!(matches!(long, Err(KeyTemplateError::TooLong { bytes: 256, .. })));
    }

    #[test]
    fn the_first_route_that_fits_holds_and_all_others_have_one() {
        let route = |mailboxes: &str, exchange: &str| Route {
            mailboxes: mailboxes.parse().unwrap(),
            vhost: "/".into(),
            exchange: exchange.into(),
            routing_key: "k".parse().unwrap(),
            persistent: true,
        };
        let listed = vec![route("7", "seven"), route("0-15", "low")];
        let others = Route { mailboxes: Mailboxes::ALL, ..route("0", "rest") };
        let routes = Routes::new(listed, others);
        for (mailbox, exchange) in [(7, "seven"), (0, "low"), (15, "low"), (16, "rest")] {
            assert_eq!(&*routes.get(routes.find(mailbox)).exchange, exchange);
        }
    }
}
