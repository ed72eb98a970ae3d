//! Files of vectors: `=== name`, then `--- request`, `--- canonical`, `--- string`.

use quelea_sqs_protocol::HttpRequest;

/// A signed request with what its signature is made of.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) request: OwnedRequest,
    pub(crate) canonical: String,
    pub(crate) string_to_sign: String,
}

/// A request that keeps its own text.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl OwnedRequest {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let line = lines.next().expect("a request line");
        let (method, rest) = line.split_once(' ').expect("a method");
        let target = rest.strip_suffix(" HTTP/1.1").expect("a version");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
        for line in lines {
            if line.starts_with(' ') {
                let (_, value) = headers.last_mut().expect("a folded line follows a header");
                value.extend_from_slice(format!("\n{line}").as_bytes());
            } else {
                let (name, value) = line.split_once(':').expect("a header");
                headers.push((name.to_owned(), value.trim().into()));
            }
        }
        let (method, path, query) = (method.into(), path.into(), query.into());
        Self { method, path, query, headers, body: body.into() }
    }

    /// Lends the request to `act`.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&HttpRequest<'_>) -> T) -> T {
        let headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        act(&HttpRequest {
            method: &self.method,
            path: &self.path,
            query: &self.query,
            headers: &headers,
            body: &self.body,
        })
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let (_, value) = self.headers.iter().find(|(of, _)| of.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8(value.clone()).expect("text"))
    }

    /// Sets a header, in place of all others of that name.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.headers.push((name.to_owned(), value.into()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.headers.retain(|(of, _)| !of.eq_ignore_ascii_case(name));
    }
}

/// Returns all cases of a file.
pub(crate) fn cases(file: &str) -> Vec<Case> {
    let parts = file.split("\n=== ").skip(1);
    let case = |text: &str| {
        let (name, rest) = text.split_once("\n--- request\n").expect("a request");
        let (request, rest) = rest.split_once("\n--- canonical\n").expect("a canonical request");
        let (canonical, string) = rest.split_once("\n--- string\n").expect("a string to sign");
        Case {
            name: name.to_owned(),
            request: OwnedRequest::parse(request),
            canonical: canonical.to_owned(),
            string_to_sign: string.trim_end().to_owned(),
        }
    };
    parts.map(case).collect()
}
