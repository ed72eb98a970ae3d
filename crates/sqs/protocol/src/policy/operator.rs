//! The operators of conditions: what each compares, and how.

use core::net::IpAddr;
use std::cmp::Ordering;

use super::date;
use super::pattern::Pattern;

/// An operator without its prefix and suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operator {
    compare: Compare,
    /// Whether it holds when no value fits: `StringNotEquals`.
    pub(super) negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Text,
    TextAnyCase,
    Like,
    Arn,
    Number(Order),
    Date(Order),
    Bool,
    Address,
}

/// How a value has to stand to the one in the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Order {
    const fn allows(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

const fn is(compare: Compare) -> Operator {
    Operator { compare, negated: false }
}

const fn is_not(compare: Compare) -> Operator {
    Operator { compare, negated: true }
}

const OPERATORS: [(&str, Operator); 25] = [
    ("StringEquals", is(Compare::Text)),
    ("StringNotEquals", is_not(Compare::Text)),
    ("StringEqualsIgnoreCase", is(Compare::TextAnyCase)),
    ("StringNotEqualsIgnoreCase", is_not(Compare::TextAnyCase)),
    ("StringLike", is(Compare::Like)),
    ("StringNotLike", is_not(Compare::Like)),
    // With ARNs, Equals and Like mean the same.
    ("ArnEquals", is(Compare::Arn)),
    ("ArnNotEquals", is_not(Compare::Arn)),
    ("ArnLike", is(Compare::Arn)),
    ("ArnNotLike", is_not(Compare::Arn)),
    ("NumericEquals", is(Compare::Number(Order::Equal))),
    ("NumericNotEquals", is_not(Compare::Number(Order::Equal))),
    ("NumericLessThan", is(Compare::Number(Order::Less))),
    ("NumericLessThanEquals", is(Compare::Number(Order::LessOrEqual))),
    ("NumericGreaterThan", is(Compare::Number(Order::Greater))),
    ("NumericGreaterThanEquals", is(Compare::Number(Order::GreaterOrEqual))),
    ("DateEquals", is(Compare::Date(Order::Equal))),
    ("DateNotEquals", is_not(Compare::Date(Order::Equal))),
    ("DateLessThan", is(Compare::Date(Order::Less))),
    ("DateLessThanEquals", is(Compare::Date(Order::LessOrEqual))),
    ("DateGreaterThan", is(Compare::Date(Order::Greater))),
    ("DateGreaterThanEquals", is(Compare::Date(Order::GreaterOrEqual))),
    ("Bool", is(Compare::Bool)),
    ("IpAddress", is(Compare::Address)),
    ("NotIpAddress", is_not(Compare::Address)),
];

impl Operator {
    pub(super) fn named(name: &str) -> Option<Self> {
        let found = OPERATORS.iter().find(|(of, _)| *of == name);
        found.map(|(_, operator)| *operator)
    }

    /// Reads a value of the policy; the error says what it should have been.
    pub(super) fn wanted(self, text: &str) -> Result<Operand, &'static str> {
        match self.compare {
            Compare::Text => Ok(Operand::Text(text.to_owned())),
            Compare::TextAnyCase => Ok(Operand::TextAnyCase(text.to_lowercase())),
            Compare::Like => Ok(Operand::Like(Pattern::new(text))),
            Compare::Arn => Ok(Operand::Arn(arn_parts(text).map(Pattern::new).collect())),
            Compare::Number(order) => {
                let number = number(text).ok_or("a number")?;
                Ok(Operand::Number(order, number))
            }
            Compare::Date(order) => {
                let date = date::parse(text).ok_or("a date in ISO 8601 or seconds since 1970")?;
                Ok(Operand::Date(order, date))
            }
            Compare::Bool => boolean(text).map(Operand::Bool).ok_or("true or false"),
            Compare::Address => {
                Network::parse(text).map(Operand::Address).ok_or("an IP address or a CIDR range")
            }
        }
    }
}

/// A value in a policy, ready to be compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Text(String),
    TextAnyCase(String),
    Like(Pattern),
    /// Each of the six parts by itself: a star does not reach over a colon.
    Arn(Vec<Pattern>),
    Number(Order, f64),
    Date(Order, i64),
    Bool(bool),
    Address(Network),
}

impl Operand {
    /// Returns whether a value of the request fits. What is no number is neither less nor more than
    /// one.
    pub(super) fn fits(&self, value: &str) -> bool {
        match self {
            Self::Text(text) => text == value,
            Self::TextAnyCase(text) => *text == value.to_lowercase(),
            Self::Like(pattern) => pattern.fits(value),
            Self::Arn(patterns) => {
                let parts: Vec<&str> = arn_parts(value).collect();
                let mut pairs = patterns.iter().zip(&parts);
                patterns.len() == parts.len() && pairs.all(|(pattern, part)| pattern.fits(part))
            }
            Self::Number(order, wanted) => number(value)
                .and_then(|value| value.partial_cmp(wanted))
                .is_some_and(|ordering| order.allows(ordering)),
            Self::Date(order, wanted) => {
                date::parse(value).is_some_and(|value| order.allows(value.cmp(wanted)))
            }
            Self::Bool(wanted) => boolean(value) == Some(*wanted),
            Self::Address(network) => value.parse().is_ok_and(|address| network.holds(address)),
        }
    }
}

fn arn_parts(text: &str) -> impl Iterator<Item = &str> {
    text.splitn(6, ':')
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

const fn boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// `203.0.113.0/24`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    bits: u128,
    mask: u128,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let max: u32 = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => max,
            Some(digits) if digits.starts_with('+') => return None,
            Some(digits) => digits.parse().ok().filter(|length| *length <= max)?,
        };
        // What follows the network's own bits is any host.
        let mask = u128::MAX.checked_shl(max - length).unwrap_or(0);
        Some(Self { bits: bits(address) & mask, mask })
    }

    fn holds(self, address: IpAddr) -> bool {
        bits(address) & self.mask == self.bits
    }
}

/// Returns an address's bits: IPv4 as it is mapped into IPv6, so that both are one kind.
const fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}
