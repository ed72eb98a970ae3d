//! Pages of lists of queues.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::Error;
use crate::limits::PAGE_MAX;
use crate::refusal;

/// Which page a client wants. A token is the last name of the page before, so nothing has to be
/// remembered, and what is made or deleted in between harms no page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) after: Option<String>,
    size: usize,
}

impl Page {
    /// Reads MaxResults and NextToken.
    ///
    /// # Errors
    /// InvalidParameterValue.
    pub(super) fn read(size: Option<i64>, token: Option<&str>) -> Result<Self, Error> {
        let size = match size {
            None => PAGE_MAX,
            Some(given) => usize::try_from(given)
                .ok()
                .filter(|size| (1..=PAGE_MAX).contains(size))
                .ok_or_else(|| {
                    let reason = "Must be an integer from 1 to 1000.";
                    refusal::invalid_value(given, "MaxResults", reason)
                })?,
        };
        let decode = |token: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok();
            let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            name.ok_or_else(|| refusal::invalid("Invalid or expired next token."))
        };
        let after = token.filter(|token| !token.is_empty()).map(decode).transpose()?;
        Ok(Self { after, size })
    }

    /// Returns how many names to ask for: one more than fit, to know whether there is a next page.
    pub(super) const fn wanted(&self) -> usize {
        self.size + 1
    }

    /// Cuts what was found to the page; returns the token of the next one, if there is one.
    pub(super) fn cut(&self, names: &mut Vec<String>) -> Option<String> {
        if names.len() <= self.size {
            return None;
        }
        names.truncate(self.size);
        names.last().map(|last| URL_SAFE_NO_PAD.encode(last))
    }
}
