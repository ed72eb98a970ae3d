//! AddPermission and RemovePermission, which edit a queue's policy.

use serde_json::{Map, Value, json};

use super::change::Part;
use super::{Caller, Service};
use crate::action::{AddPermissionRequest, RemovePermissionRequest};
use crate::attributes::Attributes;
use crate::limits::{LABEL_LENGTH_MAX, PERMISSION_ACTIONS_MAX, STATEMENTS_MAX};
use crate::names::{is_account_name, is_word};
use crate::policy::Policy;
use crate::refusal;
use crate::{Action, Error, ErrorKind, Identity, Queues, Reply};

/// What can be permitted to other accounts.
const PERMITTABLE: &[Action] = &[
    Action::SendMessage,
    Action::ReceiveMessage,
    Action::DeleteMessage,
    Action::ChangeMessageVisibility,
    Action::GetQueueAttributes,
    Action::GetQueueUrl,
    Action::ListDeadLetterSourceQueues,
    Action::PurgeQueue,
];

impl<Q: Queues, I: Identity> Service<Q, I> {
    pub(super) async fn add_permission(
        &self,
        caller: &Caller,
        request: AddPermissionRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::AddPermission).await?;
        let label = label(request.label.as_deref())?;
        check_actions(&request.actions)?;
        let accounts = &request.aws_account_ids;
        if accounts.is_empty() || !accounts.iter().all(|id| is_account_name(id)) {
            let shown = accounts.join(", ");
            let reason = "Unable to verify.";
            return Err(refusal::invalid_value(format!("[{shown}]"), "PrincipalId", reason));
        }
        let arn = self.arn(&target.queue);
        let principals = accounts.iter().map(|id| json!(format!("arn:aws:iam::{id}:root")));
        let actions = request.actions.iter().map(|action| json!(format!("SQS:{action}")));
        let statement = json!({
            "Sid": label,
            "Effect": "Allow",
            "Principal": { "AWS": one_or_list(principals.collect()) },
            "Action": one_or_list(actions.collect()),
            "Resource": arn,
        });
        let add = |old: &_| with_statement(old, label, &arn, &statement);
        self.change(caller, Action::AddPermission, target, Part::Attributes, add).await
    }

    pub(super) async fn remove_permission(
        &self,
        caller: &Caller,
        request: RemovePermissionRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::RemovePermission).await?;
        let label = label(request.label.as_deref())?;
        let remove = |old: &_| without_statement(old, label);
        self.change(caller, Action::RemovePermission, target, Part::Attributes, remove).await
    }
}

/// Returns the attributes of a queue with a statement added to its policy.
fn with_statement(
    old: &Attributes,
    label: &str,
    arn: &str,
    statement: &Value,
) -> Result<Attributes, Error> {
    // One that cannot be read is not replaced by what is understood of it: it may deny something.
    if let Some(text) = old.get("Policy") {
        Policy::parse(text)?;
    }
    let mut policy = policy_of(old);
    policy.entry("Version").or_insert_with(|| json!("2008-10-17"));
    policy.entry("Id").or_insert_with(|| json!(format!("{arn}/SQSDefaultPolicy")));
    let mut statements = statements(&mut policy);
    if statements.iter().any(|statement| statement["Sid"] == label) {
        return Err(refusal::invalid_value(label, "Label", "Already exists."));
    }
    statements.push(statement.clone());
    if statements.len() > STATEMENTS_MAX {
        let message = format!(
            "{} statements were found in the submitted policy, max allowed is {STATEMENTS_MAX}",
            statements.len()
        );
        return Err(refusal::error(ErrorKind::OverLimit, message));
    }
    let new = with_policy(old, policy, statements);
    // Its length and its principals have limits too, which count over all statements.
    if let Some(text) = new.get("Policy") {
        Policy::parse(text)?;
    }
    Ok(new)
}

/// Returns the attributes of a queue without the statements of that label in its policy.
fn without_statement(old: &Attributes, label: &str) -> Result<Attributes, Error> {
    let mut policy = policy_of(old);
    let mut statements = statements(&mut policy);
    let before = statements.len();
    statements.retain(|statement| statement["Sid"] != label);
    if statements.len() == before {
        let reason = match before {
            0 => "can't find label.",
            _ => "can't find label on existing policy.",
        };
        return Err(refusal::invalid_value(label, "Label", reason));
    }
    Ok(with_policy(old, policy, statements))
}

/// Returns the attributes of a queue with a policy of these statements. One without statements is
/// none.
fn with_policy(
    old: &Attributes,
    mut policy: Map<String, Value>,
    statements: Vec<Value>,
) -> Attributes {
    let mut attributes = old.clone();
    if statements.is_empty() {
        attributes.remove("Policy");
    } else {
        policy.insert("Statement".to_owned(), Value::Array(statements));
        attributes.insert("Policy".to_owned(), Value::Object(policy).to_string());
    }
    attributes
}

fn label(label: Option<&str>) -> Result<&str, Error> {
    let label = label.filter(|label| !label.is_empty());
    let label = label.ok_or_else(|| refusal::missing("Label"))?;
    match label.len() <= LABEL_LENGTH_MAX && is_word(label) {
        true => Ok(label),
        false => {
            let reason = "Can only include alphanumeric characters, hyphens, or underscores. 1 to \
                          80 in length";
            Err(refusal::invalid_value(label, "Label", reason))
        }
    }
}

fn check_actions(actions: &[String]) -> Result<(), Error> {
    if actions.is_empty() {
        return Err(refusal::missing("Actions"));
    }
    if actions.len() > PERMISSION_ACTIONS_MAX {
        let message = format!(
            "{} Actions were found, maximum allowed is {PERMISSION_ACTIONS_MAX}.",
            actions.len()
        );
        return Err(refusal::error(ErrorKind::OverLimit, message));
    }
    for name in actions.iter().filter(|name| *name != "*") {
        let reason = match Action::from_name(name) {
            Some(action) if PERMITTABLE.contains(&action) => continue,
            Some(_) => "Only the queue owner is allowed to invoke this action.",
            None => "Please refer to the appropriate WSDL for a list of valid actions. ",
        };
        return Err(refusal::invalid_value(format!("SQS:{name}"), "ActionName", reason));
    }
    Ok(())
}

/// Returns the queue's policy; an empty one if it has none.
fn policy_of(attributes: &Attributes) -> Map<String, Value> {
    let text = attributes.get("Policy");
    match text.and_then(|text| serde_json::from_str(text).ok()) {
        Some(Value::Object(policy)) => policy,
        // It was checked when it was set.
        _ => Map::new(),
    }
}

/// Takes a policy's statements out of it; a single one may stand there without a list.
fn statements(policy: &mut Map<String, Value>) -> Vec<Value> {
    match policy.remove("Statement") {
        Some(Value::Array(statements)) => statements,
        Some(statement) => vec![statement],
        None => Vec::new(),
    }
}

fn one_or_list(mut values: Vec<Value>) -> Value {
    match values.len() {
        1 => values.remove(0),
        _ => Value::Array(values),
    }
}
