//! What a command takes from its line or from standard input.

use std::io::{BufRead as _, Read as _};

use super::AdminError;

/// Returns the text that was given; without one, or with `-`, all of standard input.
///
/// # Errors
/// [`AdminError::Input`].
pub(crate) fn text(given: Option<String>) -> Result<String, AdminError> {
    if let Some(text) = given.filter(|text| text != "-") {
        return Ok(text);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(AdminError::Input)?;
    Ok(text)
}

/// Returns the password that was given, or else a line of standard input.
///
/// # Errors
/// [`AdminError::Input`].
pub(crate) fn password(given: Option<String>) -> Result<String, AdminError> {
    if let Some(password) = given {
        return Ok(password);
    }
    eprint!("password: ");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(AdminError::Input)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
