//! Conditions of a statement.

use std::borrow::Cow;

use super::operator::{Operand, Operator};
use super::{PolicyCaller, PolicyQuestion};
use crate::sigv4::AmzTime;

/// One key under one operator.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    key: Key,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    /// `Null`: whether the key is to be absent.
    Absent(bool),
    Values {
        negated: bool,
        /// What holds if the request has no such key.
        if_absent: bool,
        wanted: Vec<Operand>,
    },
}

/// The keys of a condition that requests have here, by their names in small letters.
const KEYS: [(&str, Key); 11] = [
    ("aws:currenttime", Key::CurrentTime),
    ("aws:epochtime", Key::EpochTime),
    ("aws:securetransport", Key::SecureTransport),
    ("aws:sourceip", Key::SourceIp),
    ("aws:sourcearn", Key::SourceArn),
    ("aws:sourceaccount", Key::SourceAccount),
    ("aws:useragent", Key::UserAgent),
    ("aws:principalarn", Key::PrincipalArn),
    ("aws:principalaccount", Key::PrincipalAccount),
    ("aws:principaltype", Key::PrincipalType),
    ("aws:username", Key::Username),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    CurrentTime,
    EpochTime,
    SecureTransport,
    SourceIp,
    SourceArn,
    SourceAccount,
    UserAgent,
    PrincipalArn,
    PrincipalAccount,
    PrincipalType,
    Username,
    /// One that AWS may have, and that no request here does.
    Other,
}

impl Condition {
    /// Reads a condition; the error says what is wrong.
    pub(super) fn parse(operator: &str, key: &str, values: &[String]) -> Result<Self, String> {
        let lower = key.to_ascii_lowercase();
        let known = KEYS.iter().find(|(name, _)| *name == lower).map(|(_, key)| *key);
        let of_service = |(service, name): (&str, &str)| !service.is_empty() && !name.is_empty();
        let key = match known {
            Some(key) => key,
            None if key.split_once(':').is_some_and(of_service) => Key::Other,
            None => return Err(format!("'{key}' is no condition key")),
        };
        if values.is_empty() {
            return Err("there is no value".to_owned());
        }
        let unknown = || format!("'{operator}' is no condition operator");
        if operator == "Null" {
            let absent: Vec<_> = values.iter().map(|value| value.parse::<bool>()).collect();
            return match absent[..] {
                [Ok(absent)] => Ok(Self { key, test: Test::Absent(absent) }),
                _ => Err("Null takes true or false".to_owned()),
            };
        }
        // The keys here have one value or none, so that "any of them" and "all of them" differ only
        // where there is none.
        let (name, of_none) = match operator.split_once(':') {
            Some(("ForAnyValue", name)) => (name, Some(false)),
            Some(("ForAllValues", name)) => (name, Some(true)),
            Some(_) => return Err(unknown()),
            None => (operator, None),
        };
        let (name, if_exists) = match name.strip_suffix("IfExists") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let operator = Operator::named(name).ok_or_else(unknown)?;
        let wanted = |value: &String| {
            let wanted = operator.wanted(value);
            wanted.map_err(|expected| format!("'{value}' is not {expected}"))
        };
        let negated = operator.negated;
        let if_absent = if_exists || of_none.unwrap_or(negated);
        let wanted = values.iter().map(wanted).collect::<Result<_, _>>()?;
        Ok(Self { key, test: Test::Values { negated, if_absent, wanted } })
    }

    pub(super) fn holds(&self, question: &PolicyQuestion<'_>) -> bool {
        let value = self.key.value(question);
        match (&self.test, value) {
            (Test::Absent(absent), value) => *absent == value.is_none(),
            (Test::Values { if_absent, .. }, None) => *if_absent,
            (Test::Values { negated, wanted, .. }, Some(value)) => {
                wanted.iter().any(|wanted| wanted.fits(&value)) != *negated
            }
        }
    }
}

impl Key {
    fn value<'a>(self, question: &PolicyQuestion<'a>) -> Option<Cow<'a, str>> {
        let caller = question.caller;
        let owned = |text: String| Some(Cow::Owned(text));
        match self {
            Self::CurrentTime | Self::EpochTime => {
                owned(AmzTime::from_millis(question.now_ms).seconds().to_string())
            }
            Self::SecureTransport => owned(question.secure.to_string()),
            Self::SourceIp => {
                question.source_ip.and_then(|ip| owned(ip.to_canonical().to_string()))
            }
            Self::SourceArn => question.source_arn.map(Cow::Borrowed),
            Self::SourceAccount => question.source_account.map(Cow::Borrowed),
            Self::UserAgent => question.user_agent.map(Cow::Borrowed),
            Self::PrincipalArn => caller.and_then(|caller| owned(arn(caller))),
            Self::PrincipalAccount => caller.map(|caller| Cow::Borrowed(caller.account)),
            Self::PrincipalType => Some(Cow::Borrowed(match caller {
                None => "Anonymous",
                Some(PolicyCaller { user: None, .. }) => "Account",
                Some(PolicyCaller { user: Some(_), .. }) => "User",
            })),
            Self::Username => caller.and_then(|caller| caller.user).map(Cow::Borrowed),
            Self::Other => None,
        }
    }
}

fn arn(caller: PolicyCaller<'_>) -> String {
    let account = caller.account;
    match caller.user {
        Some(user) => format!("arn:aws:iam::{account}:user/{user}"),
        None => format!("arn:aws:iam::{account}:root"),
    }
}
