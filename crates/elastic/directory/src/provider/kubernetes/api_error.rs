//! What the API server's refusals mean to a start or a stop: whether trying again may help.

use std::time::Duration;

use super::{CALL_MAX, PROVIDER};
use crate::provider::ProviderError;

/// Why a call did not work.
pub(super) enum CallError {
    /// The client or the API server says so.
    Api(Box<kube::Error>),
    /// No answer in time.
    Late(Duration),
}

/// Waits for a call, which ends, if not by an answer, then by the clock.
pub(super) async fn with_timeout<T>(
    what: &(dyn Fn() -> String + Sync),
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(CALL_MAX, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(CallError::Api(Box::new(error))),
        Err(_) => {
            tracing::debug!(what = what(), "the API server does not answer");
            Err(CallError::Late(CALL_MAX))
        }
    }
}

/// Returns whether the API server gave this reason, as `AlreadyExists`.
pub(super) fn has_reason(error: &CallError, reason: &str) -> bool {
    matches!(error, CallError::Api(error)
        if matches!(&**error, kube::Error::Api(status) if status.reason == reason))
}

impl CallError {
    /// Returns the error as the directory has it.
    pub(super) fn of(&self, what: &(dyn Fn() -> String + Sync)) -> ProviderError {
        let (what, cause) = (what(), self.to_string());
        if self.may_pass() {
            ProviderError::Unavailable { provider: PROVIDER, what, cause }
        } else {
            ProviderError::Refused { provider: PROVIDER, what, cause }
        }
    }

    /// Returns whether trying again may help.
    pub(super) fn may_pass(&self) -> bool {
        let Self::Api(error) = self else { return true };
        match &**error {
            kube::Error::Api(status) => {
                // A quota frees itself when other relays go.
                let quota = status.code == 403 && status.message.contains("exceeded quota");
                quota || matches!(status.code, 0 | 408 | 409 | 429 | 500..)
            }
            kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => {
                true
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Api(error) => match &**error {
                kube::Error::Api(status) => write!(out, "{} ({})", status.message, status.code),
                // The client's own texts stop short of the cause.
                other => {
                    write!(out, "{other}")?;
                    let mut cause = std::error::Error::source(other);
                    while let Some(error) = cause {
                        write!(out, ": {error}")?;
                        cause = error.source();
                    }
                    Ok(())
                }
            },
            Self::Late(after) => write!(out, "no answer within {} s", after.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn outcome(code: u16, reason: &str, message: &str) -> ProviderError {
        let status = Status {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Status::default()
        };
        CallError::Api(Box::new(kube::Error::Api(status.boxed()))).of(&|| "start".to_owned())
    }

    #[test]
    fn what_may_pass_is_tried_again_and_what_is_wrong_is_not() {
        let passes = |error| matches!(error, ProviderError::Unavailable { .. });
        assert!(passes(outcome(500, "InternalError", "etcd is gone")));
        assert!(passes(outcome(429, "TooManyRequests", "slow down")));
        assert!(passes(outcome(
            403,
            "Forbidden",
            "pods \"a\" is forbidden: exceeded quota: relays"
        )));
        assert!(passes(CallError::Late(CALL_MAX).of(&|| "start".to_owned())));
        assert!(!passes(outcome(403, "Forbidden", "cannot create resource \"pods\"")));
        assert!(!passes(outcome(422, "Invalid", "spec.containers[0].image: Required value")));
        assert!(!passes(outcome(404, "NotFound", "namespaces \"x\" not found")));
    }

    #[test]
    fn a_refusal_says_what_the_api_server_said() {
        let told = outcome(422, "Invalid", "spec.containers[0].image: Required value").to_string();
        assert_eq!(told, "kubernetes cannot start: spec.containers[0].image: Required value (422)");
    }
}
