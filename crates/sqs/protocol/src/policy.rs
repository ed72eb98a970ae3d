//! Queue policies: IAM policy documents, the queue attribute `Policy`.
//!
//! A policy is read and checked once, when it is set, and asked for each request. An explicit deny
//! wins, then an allow; a policy that says nothing leaves it to the caller's permissions. No clock:
//! the time is part of the question.
//!
//! Source: "IAM JSON policy elements reference" and "Policy evaluation logic" in AWS's IAM user guide.

mod condition;
mod date;
mod document;
mod operator;
mod pattern;
mod principal;

use core::net::IpAddr;

use condition::Condition;
use pattern::Pattern;
use principal::Principals;

use crate::limits::POLICY_BYTES_MAX;
use crate::{Error, ErrorKind};

/// A policy that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    statements: Vec<Statement>,
}

/// What a policy says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A statement forbids it, whatever else allows it.
    Deny,
    /// A statement allows it, and none forbids it.
    Allow,
    /// No statement applies.
    Silent,
}

/// A request, as far as policies see it.
#[derive(Clone, Copy, Debug)]
pub struct PolicyQuestion<'a> {
    /// Who asks; `None`: somebody without an access key.
    pub caller: Option<PolicyCaller<'a>>,
    /// The action, such as `SendMessage`. The batch actions have no permission of their own: ask for
    /// `SendMessage` where it is `SendMessageBatch`.
    pub action: &'a str,
    /// The queue's ARN.
    pub resource: &'a str,
    /// The time, in ms since 1970.
    pub now_ms: u64,
    /// `aws:SourceIp`.
    pub source_ip: Option<IpAddr>,
    /// `aws:SecureTransport`.
    pub secure: bool,
    /// `aws:UserAgent`.
    pub user_agent: Option<&'a str>,
    /// `aws:SourceArn`: what a service calls for.
    pub source_arn: Option<&'a str>,
    /// `aws:SourceAccount`: whose that is.
    pub source_account: Option<&'a str>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyCaller<'a> {
    /// The account.
    pub account: &'a str,
    /// The user in it; `None`: the account itself.
    pub user: Option<&'a str>,
}

/// Why a text is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is longer than a policy may be.
    #[error(
        "Invalid value for the parameter Policy. Reason: it is {bytes} bytes long, the limit is {POLICY_BYTES_MAX}."
    )]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It has more of something than it may have.
    #[error("{count} {what} were found in the submitted policy, max allowed is {max}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// It is no JSON.
    #[error("Invalid value for the parameter Policy. Reason: it is no JSON: {reason}.")]
    Json {
        /// What is wrong, with the place.
        reason: String,
    },
    /// An element is missing, unknown or not what it has to be.
    #[error("Invalid value for the parameter Policy. Reason: {element}: {reason}.")]
    Element {
        /// Where, such as `Statement[1].Action`.
        element: String,
        /// What is wrong.
        reason: String,
    },
}

impl From<PolicyError> for Error {
    fn from(error: PolicyError) -> Self {
        let kind = match &error {
            PolicyError::TooMany { .. } => ErrorKind::OverLimit,
            _ => ErrorKind::InvalidAttributeValue,
        };
        Self::new(kind, error.to_string())
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
struct Statement {
    allow: bool,
    principals: Principals,
    actions: Patterns,
    resources: Patterns,
    /// All of them have to hold.
    conditions: Vec<Condition>,
}

/// `Action` or `NotAction`, `Resource` or `NotResource`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Patterns {
    /// Whether those are meant that fit none.
    others: bool,
    patterns: Vec<Pattern>,
}

impl Patterns {
    fn fit(&self, text: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.fits(text)) != self.others
    }
}

impl Policy {
    /// Reads a policy and checks all of it.
    ///
    /// # Errors
    /// [`PolicyError`], for the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        document::parse(text)
    }

    /// Returns what the policy says about a request.
    #[must_use]
    pub fn evaluate(&self, question: &PolicyQuestion<'_>) -> Verdict {
        // Actions are compared in small letters.
        let action = format!("sqs:{}", question.action.to_ascii_lowercase());
        let mut verdict = Verdict::Silent;
        for statement in &self.statements {
            if statement.applies(question, &action) {
                if !statement.allow {
                    return Verdict::Deny;
                }
                verdict = Verdict::Allow;
            }
        }
        verdict
    }
}

impl Statement {
    fn applies(&self, question: &PolicyQuestion<'_>, action: &str) -> bool {
        self.actions.fit(action)
            && self.resources.fit(question.resource)
            && self.principals.are(question.caller)
            && self.conditions.iter().all(|condition| condition.holds(question))
    }
}
