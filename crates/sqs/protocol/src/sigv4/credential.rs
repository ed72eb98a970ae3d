//! `AKIAIOSFODNN7EXAMPLE/20150830/us-east-1/sqs/aws4_request`: a key and what it signs for.

use super::{AmzTime, SignatureError, TERMINATOR};
use crate::limits::REGION_BYTES_MAX;

/// A credential, cut into its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credential {
    text: String,
    /// Where the access key id ends.
    id_end: usize,
}

impl Credential {
    pub(crate) fn parse(text: &str) -> Result<Self, SignatureError> {
        let slashes = text.bytes().filter(|byte| *byte == b'/').count();
        let id_end = text.bytes().position(|byte| byte == b'/');
        match id_end.filter(|end| *end > 0 && slashes == 4) {
            Some(id_end) => Ok(Self { text: text.to_owned(), id_end }),
            None => Err(SignatureError::CredentialShape { credential: text.to_owned() }),
        }
    }

    pub(crate) fn new(id: &str, time: AmzTime, region: &str, service: &str) -> Self {
        let date = time.basic();
        let text = format!("{id}/{}/{region}/{service}/{TERMINATOR}", &date[..8]);
        Self { text, id_end: id.len() }
    }

    /// Returns the whole credential.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the access key's id.
    pub(crate) fn id(&self) -> &str {
        &self.text[..self.id_end]
    }

    /// Returns all that follows the id: `20150830/us-east-1/sqs/aws4_request`.
    pub(crate) fn scope(&self) -> &str {
        &self.text[self.id_end + 1..]
    }

    /// Returns date, region, service and terminator.
    pub(crate) fn scope_parts(&self) -> [&str; 4] {
        let mut parts = self.scope().split('/');
        std::array::from_fn(|_| parts.next().unwrap_or(""))
    }

    /// Checks the scope against the request's time and this service. Any region will do that is no
    /// longer than regions are.
    pub(crate) fn check(&self, time: AmzTime, service: &str) -> Result<(), SignatureError> {
        let [date, region, for_service, terminator] = self.scope_parts();
        if terminator != TERMINATOR {
            return Err(SignatureError::ScopeTerminator { got: terminator.to_owned() });
        }
        if for_service != service {
            return Err(SignatureError::ScopeService { expected: service.to_owned() });
        }
        if !(1..=REGION_BYTES_MAX).contains(&region.len()) {
            return Err(SignatureError::ScopeRegion);
        }
        let timestamp = time.basic();
        if date != &timestamp[..8] {
            let date = date.to_owned();
            return Err(SignatureError::ScopeDate { date, timestamp });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_has_five_parts() {
        let text = "AKID/20150830/us-east-1/sqs/aws4_request";
        let credential = Credential::parse(text).unwrap();
        assert_eq!(credential.id(), "AKID");
        assert_eq!(credential.scope(), "20150830/us-east-1/sqs/aws4_request");
        assert_eq!(credential.scope_parts(), ["20150830", "us-east-1", "sqs", "aws4_request"]);
        let time = AmzTime::parse_basic("20150830T123600Z").unwrap();
        assert_eq!(Credential::new("AKID", time, "us-east-1", "sqs"), credential);
        for bad in ["", "AKID", "AKID/20150830/sqs/aws4_request", "/1/2/3/4", "A/1/2/3/4/5"] {
            assert!(Credential::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_scope_has_to_be_that_of_the_request() {
        let time = AmzTime::parse_basic("20150830T123600Z").unwrap();
        let check = |scope: &str| {
            let credential = Credential::parse(&format!("AKID/{scope}")).unwrap();
            credential.check(time, "sqs").map_err(|error| error.to_string())
        };
        let in_region = |length: usize| format!("20150830/{}/sqs/aws4_request", "r".repeat(length));
        assert_eq!(check("20150830/anywhere/sqs/aws4_request"), Ok(()));
        assert_eq!(check(&in_region(REGION_BYTES_MAX)), Ok(()));
        let too_long = in_region(REGION_BYTES_MAX + 1);
        let no_region = "Credential should be scoped to a valid region.";
        let cases = [
            (
                "20150831/us-east-1/sqs/aws4_request",
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date \
                 from HTTP: '20150831' != '20150830', from '20150830T123600Z'.",
            ),
            (
                "20150830/us-east-1/sns/aws4_request",
                "Credential should be scoped to correct service: 'sqs'.",
            ),
            (
                "20150830/us-east-1/sqs/aws5_request",
                "Credential should be scoped with a valid terminator: 'aws4_request', not \
                 'aws5_request'.",
            ),
            ("20150830//sqs/aws4_request", no_region),
            (&too_long, no_region),
        ];
        for (scope, text) in cases {
            assert_eq!(check(scope), Err(text.to_owned()), "{scope}");
        }
    }
}
