//! `quelea admin user`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::client::{Client, segment};
use super::table::{self, Output};
use super::{AdminError, input};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// All users and their tags.
    List,
    /// Adds a user. The password is the first line of standard input unless --new-password is given.
    Add {
        name: String,
        /// Comma-separated: administrator, monitoring, management, policymaker, impersonator.
        #[arg(long, default_value = "")]
        tags: String,
        #[arg(long)]
        new_password: Option<String>,
    },
    /// Changes a user's password, read like that of `add`; without a name, that of the user who signs in.
    Password {
        name: Option<String>,
        #[arg(long)]
        new_password: Option<String>,
    },
    /// Changes a user's tags.
    Tags { name: String, tags: String },
    /// Deletes a user, with its permissions.
    Delete { name: String },
}

pub(crate) fn run(command: Command, client: &Client, output: Output) -> Result<(), AdminError> {
    match command {
        Command::List => {
            table::print(&client.get("/api/users")?, &["name", "tags"], output);
        }
        Command::Add { name, tags, new_password } => {
            if client.find(&path(&name))?.is_some() {
                return Err(AdminError::UserExists { name });
            }
            let password = input::password(new_password)?;
            client.put(&path(&name), &json!({ "password": password, "tags": tags }))?;
        }
        Command::Password { name: None, new_password } => {
            let password = input::password(new_password)?;
            client.put("/quelea/v1/password", &json!({ "password": password }))?;
        }
        Command::Password { name: Some(name), new_password } => {
            let tags = tags_of(&client.get(&path(&name))?);
            let password = input::password(new_password)?;
            client.put(&path(&name), &json!({ "password": password, "tags": tags }))?;
        }
        Command::Tags { name, tags } => {
            client.put(&path(&name), &with_tags(&client.get(&path(&name))?, &tags))?;
        }
        Command::Delete { name } => client.delete(&path(&name))?,
    }
    Ok(())
}

fn path(name: &str) -> String {
    format!("/api/users/{}", segment(name))
}

fn tags_of(user: &Value) -> String {
    let tags = user["tags"].as_array().into_iter().flatten();
    tags.filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

/// Returns what sets a user's tags and leaves the password as it is: a hash means what its algorithm says.
fn with_tags(user: &Value, tags: &str) -> Value {
    let [hash, algorithm] = ["password_hash", "hashing_algorithm"].map(|field| &user[field]);
    json!({ "password_hash": hash, "hashing_algorithm": algorithm, "tags": tags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_set_beside_a_hash_of_any_algorithm() {
        let algorithm = "rabbit_password_hashing_sha512";
        let user = json!({
            "name": "ada", "password_hash": "aGFzaA==", "hashing_algorithm": algorithm, "tags": ["management"],
        });
        let asked = json!({
            "password_hash": "aGFzaA==", "hashing_algorithm": algorithm, "tags": "monitoring",
        });
        assert_eq!(with_tags(&user, "monitoring"), asked);
    }
}
