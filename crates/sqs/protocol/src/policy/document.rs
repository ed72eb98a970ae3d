//! From JSON to a policy. Everything is checked, so that a slip of the pen is no open door; but a
//! resource may be any text, as it may for SQS: one that is no ARN fits no queue.

use serde_json::{Map, Value};

use super::condition::Condition;
use super::pattern::Pattern;
use super::principal::{Principal, Principals};
use super::{Patterns, Policy, PolicyError, Statement};

use crate::limits::{CONDITIONS_MAX, POLICY_BYTES_MAX, PRINCIPALS_MAX, STATEMENTS_MAX};

const VERSIONS: [&str; 2] = ["2008-10-17", "2012-10-17"];

pub(super) fn parse(text: &str) -> Result<Policy, PolicyError> {
    if text.len() > POLICY_BYTES_MAX {
        return Err(PolicyError::TooLong { bytes: text.len() });
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| PolicyError::Json { reason: error.to_string() })?;
    let document = object("Policy", &value)?;
    let mut statements = Vec::new();
    for (name, value) in document {
        match (&**name, value) {
            ("Version", Value::String(version)) if VERSIONS.contains(&&**version) => {}
            ("Version", _) => return Err(element(name, "it is 2012-10-17 or 2008-10-17")),
            ("Id", Value::String(_)) => {}
            ("Id", _) => return Err(element(name, "it is no text")),
            ("Statement", Value::Array(list)) => statements = list.iter().collect(),
            ("Statement", one) => statements.push(one),
            _ => return Err(element(name, "a policy has no such element")),
        }
    }
    if statements.is_empty() {
        return Err(element("Statement", "there is none"));
    }
    limit("Statements", statements.len(), STATEMENTS_MAX)?;
    let numbered = statements.into_iter().enumerate();
    let statements = numbered
        .map(|(at, statement)| parse_statement(&format!("Statement[{at}]"), statement))
        .collect::<Result<Vec<_>, _>>()?;
    let count = |of: fn(&Statement) -> usize| statements.iter().map(of).sum();
    limit("Principals", count(|statement| statement.principals.listed.len()), PRINCIPALS_MAX)?;
    limit("Conditions", count(|statement| statement.conditions.len()), CONDITIONS_MAX)?;
    Ok(Policy { statements })
}

fn parse_statement(at: &str, value: &Value) -> Result<Statement, PolicyError> {
    let (mut allow, mut principals, mut actions, mut resources) = (None, None, None, None);
    let mut conditions = Vec::new();
    for (name, value) in object(at, value)? {
        let at = format!("{at}.{name}");
        let others = name.starts_with("Not");
        let twice = |is: bool| match is {
            true => Err(element(&at, "it excludes the same element with or without Not")),
            false => Ok(()),
        };
        match &**name {
            "Sid" if value.is_string() => {}
            "Effect" => {
                allow = Some(match value.as_str() {
                    Some("Allow") => true,
                    Some("Deny") => false,
                    _ => return Err(element(&at, "it is Allow or Deny")),
                });
            }
            "Principal" | "NotPrincipal" => {
                let listed = parse_principals(&at, value)?;
                twice(principals.replace(Principals { others, listed }).is_some())?;
            }
            "Action" | "NotAction" => {
                let patterns = texts(&at, value)?;
                let patterns = patterns
                    .iter()
                    .map(|text| parse_action(&at, text))
                    .collect::<Result<_, _>>()?;
                twice(actions.replace(Patterns { others, patterns }).is_some())?;
            }
            "Resource" | "NotResource" => {
                let patterns = texts(&at, value)?;
                let patterns = patterns.iter().map(|text| Pattern::new(text)).collect();
                twice(resources.replace(Patterns { others, patterns }).is_some())?;
            }
            "Condition" => conditions = parse_conditions(&at, value)?,
            "Sid" => return Err(element(&at, "it is no text")),
            _ => return Err(element(&at, "a statement has no such element")),
        }
    }
    let missing = |name: &str| element(&format!("{at}.{name}"), "it is missing");
    Ok(Statement {
        allow: allow.ok_or_else(|| missing("Effect"))?,
        principals: principals.ok_or_else(|| missing("Principal"))?,
        actions: actions.ok_or_else(|| missing("Action"))?,
        resources: resources.unwrap_or_else(the_queue),
        conditions,
    })
}

/// Parses `"*"`, or lists by kind: `{"AWS": ["111122223333", "arn:aws:iam::…:user/x"]}`.
fn parse_principals(at: &str, value: &Value) -> Result<Vec<Principal>, PolicyError> {
    if value.as_str() == Some("*") {
        return Ok(vec![Principal::Anybody]);
    }
    let mut listed = Vec::new();
    for (kind, value) in object(at, value)? {
        let at = format!("{at}.{kind}");
        for text in texts(&at, value)? {
            listed.push(match &**kind {
                "AWS" => Principal::parse(&text)
                    .ok_or_else(|| element(&at, &format!("'{text}' is no principal")))?,
                "Service" | "Federated" | "CanonicalUser" => Principal::Absent,
                _ => return Err(element(&at, "there is no such kind of principal")),
            });
        }
    }
    if listed.is_empty() {
        return Err(element(at, "there is none"));
    }
    Ok(listed)
}

fn parse_action(at: &str, text: &str) -> Result<Pattern, PolicyError> {
    let lower = text.to_ascii_lowercase();
    if lower == "*" || lower.strip_prefix("sqs:").is_some_and(|name| !name.is_empty()) {
        return Ok(Pattern::new(&lower));
    }
    Err(element(at, "Policy statement action out of service scope!"))
}

/// Returns what a statement without a resource is about: the queue whose policy it stands in.
fn the_queue() -> Patterns {
    Patterns { others: false, patterns: vec![Pattern::new("*")] }
}

/// Parses `{"StringEquals": {"aws:username": "x"}, "Bool": {"aws:SecureTransport": "true"}}`.
fn parse_conditions(at: &str, value: &Value) -> Result<Vec<Condition>, PolicyError> {
    let mut conditions = Vec::new();
    for (operator, keys) in object(at, value)? {
        let at = format!("{at}.{operator}");
        for (key, value) in object(&at, keys)? {
            let at = format!("{at}.{key}");
            let values = texts(&at, value)?;
            let condition = Condition::parse(operator, key, &values);
            conditions.push(condition.map_err(|reason| element(&at, &reason))?);
        }
    }
    Ok(conditions)
}

/// Reads one text or a list of them. Numbers and booleans stand for their text.
fn texts(at: &str, value: &Value) -> Result<Vec<String>, PolicyError> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        _ => Err(element(at, "it is neither a text nor a list of texts")),
    };
    match value {
        Value::Array(list) if list.is_empty() => Err(element(at, "the list is empty")),
        Value::Array(list) => list.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

fn object<'a>(at: &str, value: &'a Value) -> Result<&'a Map<String, Value>, PolicyError> {
    value.as_object().ok_or_else(|| element(at, "it is no JSON object"))
}

fn element(element: &str, reason: &str) -> PolicyError {
    PolicyError::Element { element: element.to_owned(), reason: reason.to_owned() }
}

const fn limit(what: &'static str, count: usize, max: usize) -> Result<(), PolicyError> {
    if count <= max { Ok(()) } else { Err(PolicyError::TooMany { what, count, max }) }
}
