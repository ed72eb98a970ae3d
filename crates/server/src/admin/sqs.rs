//! `quelea admin sqs`: an operation of the SQS interface, as the user who signs in.

use clap::Args;
use serde_json::{Map, Value};

use super::client::{Client, segment};
use super::{AdminError, input};
use crate::stdout::print_line;

#[derive(Debug, Args)]
pub(crate) struct SqsArgs {
    /// The operation, such as ListQueues.
    action: String,
    /// Its request as JSON, such as '{"QueueNamePrefix": "orders"}'; `-` reads it from standard input.
    #[arg(default_value = "{}")]
    request: String,
    #[command(flatten)]
    account: Account,
}

/// In which account.
#[derive(Debug, Args)]
pub(crate) struct Account {
    /// The account; without it, the one that virtual host `/` is.
    #[arg(long, global = true)]
    account: Option<String>,
}

impl Account {
    /// Returns the account's id.
    ///
    /// # Errors
    /// Those of the API, when it has to be looked up; [`AdminError::NoAccount`].
    pub(crate) fn id(&self, client: &Client) -> Result<String, AdminError> {
        if let Some(account) = &self.account {
            return Ok(account.clone());
        }
        let accounts = client.get("/api/accounts")?;
        let mut accounts = accounts.as_array().into_iter().flatten();
        let default = accounts.find(|account| account["vhost"] == "/");
        let id = default.and_then(|account| account["account"].as_str());
        id.map(str::to_owned).ok_or(AdminError::NoAccount)
    }
}

/// Runs it, and prints the JSON of its result.
///
/// # Errors
/// Those of the API; [`AdminError::Request`] if the request is no JSON object.
pub(crate) fn run(args: SqsArgs, client: &Client) -> Result<(), AdminError> {
    let text = input::text(Some(args.request))?;
    let request = serde_json::from_str::<Map<String, Value>>(&text);
    let request = request.map_err(|error| AdminError::Request(error.to_string()))?;
    let account = args.account.id(client)?;
    let result = call(client, &account, &args.action, &Value::Object(request))?;
    print_line!("{result:#}");
    Ok(())
}

/// Carries out an operation.
///
/// # Errors
/// Those of the API.
pub(crate) fn call(
    client: &Client,
    account: &str,
    action: &str,
    request: &Value,
) -> Result<Value, AdminError> {
    let path = format!("/quelea/v1/sqs/{}/{}", segment(account), segment(action));
    Ok(client.post(&path, request)?)
}
