//! AddPermission and RemovePermission, which edit a queue's policy.

use serde_json::{Map, Value, json};

use super::{Caller, Service, Target};
use crate::action::{AddPermissionRequest, RemovePermissionRequest};
use crate::names::is_word;
use crate::refusal;
use crate::{Action, Error, ErrorKind, Queues, Reply};

/// Actions of one statement.
const ACTIONS_MAX: usize = 7;

/// Statements of a policy.
const STATEMENTS_MAX: usize = 20;

/// Letters of a label.
const LABEL_LENGTH_MAX: usize = 80;

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

impl<Q: Queues> Service<Q> {
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
        let is_account = |id: &String| !id.is_empty() && is_word(id);
        if accounts.is_empty() || !accounts.iter().all(is_account) {
            let shown = accounts.join(", ");
            let reason = "Unable to verify.";
            return Err(refusal::invalid_value(format!("[{shown}]"), "PrincipalId", reason));
        }
        let mut policy = policy_of(&target);
        let arn = self.arn(&target.queue);
        policy.entry("Version").or_insert_with(|| json!("2008-10-17"));
        policy.entry("Id").or_insert_with(|| json!(format!("{arn}/SQSDefaultPolicy")));
        let mut statements = statements(&mut policy);
        if statements.iter().any(|statement| statement["Sid"] == label) {
            return Err(refusal::invalid_value(label, "Label", "Already exists."));
        }
        let principals = accounts.iter().map(|id| json!(format!("arn:aws:iam::{id}:root")));
        let actions = request.actions.iter().map(|action| json!(format!("SQS:{action}")));
        statements.push(json!({
            "Sid": label,
            "Effect": "Allow",
            "Principal": { "AWS": one_or_list(principals.collect()) },
            "Action": one_or_list(actions.collect()),
            "Resource": arn,
        }));
        if statements.len() > STATEMENTS_MAX {
            let message = format!(
                "{} statements were found in the submitted policy, max allowed is {STATEMENTS_MAX}",
                statements.len()
            );
            return Err(refusal::error(ErrorKind::OverLimit, message));
        }
        policy.insert("Statement".to_owned(), Value::Array(statements));
        self.put_policy(&target, Some(Value::Object(policy).to_string())).await
    }

    pub(super) async fn remove_permission(
        &self,
        caller: &Caller,
        request: RemovePermissionRequest,
    ) -> Result<Reply, Error> {
        let url = request.queue_url.as_deref();
        let target = self.target(caller, url, Action::RemovePermission).await?;
        let label = label(request.label.as_deref())?;
        let mut policy = policy_of(&target);
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
        if statements.is_empty() {
            return self.put_policy(&target, None).await;
        }
        policy.insert("Statement".to_owned(), Value::Array(statements));
        self.put_policy(&target, Some(Value::Object(policy).to_string())).await
    }

    async fn put_policy(&self, target: &Target, policy: Option<String>) -> Result<Reply, Error> {
        let mut attributes = target.facts.attributes.clone();
        match policy {
            Some(policy) => attributes.insert("Policy".to_owned(), policy),
            None => attributes.remove("Policy"),
        };
        self.queues.put_attributes(target.facts.key, attributes).await.map_err(refusal::fault)?;
        Ok(Reply::Empty)
    }
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
    if actions.len() > ACTIONS_MAX {
        let message =
            format!("{} Actions were found, maximum allowed is {ACTIONS_MAX}.", actions.len());
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

/// The queue's policy; an empty one if it has none.
fn policy_of(target: &Target) -> Map<String, Value> {
    let text = target.facts.attributes.get("Policy");
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
