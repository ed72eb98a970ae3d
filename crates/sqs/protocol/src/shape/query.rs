//! The parameters of a Query request, as a tree: the dots in their names make the branches.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use super::Names;
use crate::limits::QUERY_PARAMETERS_MAX;
use crate::{Error, ErrorKind};

/// `SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.BinaryListValue.1` has seven parts.
const PARTS_MAX: usize = 8;

/// A parameter with its value, decoded.
pub(crate) type Parameter<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Parses the parameters of a form or of a URL's query, in their order.
pub(crate) fn parameters(form: &[u8]) -> Result<Vec<Parameter<'_>>, Error> {
    let form = str::from_utf8(form).map_err(|_| malformed("it is not UTF-8"))?;
    let mut parameters = Vec::new();
    for parameter in form.split('&').filter(|parameter| !parameter.is_empty()) {
        if parameters.len() == QUERY_PARAMETERS_MAX {
            return Err(malformed(&format!("it has more than {QUERY_PARAMETERS_MAX} parameters")));
        }
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        parameters.push((decoded(name)?, decoded(value)?));
    }
    Ok(parameters)
}

fn malformed(reason: &str) -> Error {
    Error::new(ErrorKind::MalformedQueryString, format!("The query string is malformed: {reason}."))
}

fn decoded(text: &str) -> Result<Cow<'_, str>, Error> {
    let not_utf8 = |_| malformed("a parameter is not UTF-8");
    if text.contains('+') {
        let spaced = text.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8().map_err(not_utf8)?;
        return Ok(Cow::Owned(decoded.into_owned()));
    }
    percent_decode_str(text).decode_utf8().map_err(not_utf8)
}

/// Parameters whose names begin alike, without what is alike.
#[derive(Debug, Default)]
pub(crate) struct Parameters<'a> {
    value: Option<&'a str>,
    children: BTreeMap<&'a str, Self>,
}

impl<'a> Parameters<'a> {
    /// Returns all parameters of a request. Of two with the same name the last one counts.
    pub(crate) fn new(parameters: &'a [Parameter<'a>]) -> Self {
        let mut root = Self::default();
        for (name, value) in parameters {
            let parts = name.splitn(PARTS_MAX, '.');
            parts.fold(&mut root, |node, part| node.children.entry(part).or_default()).value =
                Some(value);
        }
        root
    }

    /// Returns the parameter that has just this name.
    pub(crate) const fn value(&self) -> Option<&'a str> {
        self.value
    }

    /// Returns the parameters whose names go on with this part.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.get(name)
    }

    /// Returns the parameters of a list's or a map's items. The AWS SDK for Java v2 called them by
    /// the name of the member, not of the item, for years (aws-sdk-java-v2#2524), and Amazon takes
    /// both.
    pub(crate) fn items(&self, names: &Names) -> Option<&Self> {
        self.child(names.item).or_else(|| self.child(names.member))
    }

    /// Returns the items of a list, by their numbers; numbers may be missing.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = &Self> {
        let mut items: Vec<(u32, &Self)> = self
            .children
            .iter()
            .filter_map(|(number, item)| Some((number.parse().ok()?, item)))
            .collect();
        items.sort_unstable_by_key(|(number, _)| *number);
        items.into_iter().map(|(_, item)| item)
    }
}
