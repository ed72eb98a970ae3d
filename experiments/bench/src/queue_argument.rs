//! Arguments of queues, as the command line has them.

use quelea_model::Value;

/// Parses `name=value`; a value that reads as a number or as true/false is sent as one.
pub(crate) fn parse_argument(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let value = match (value.parse::<i64>(), value.parse::<bool>()) {
        (Ok(number), _) => Value::I64(number),
        (_, Ok(truth)) => Value::Bool(truth),
        _ => Value::text(value),
    };
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_arguments_get_the_type_they_look_like() {
        let quorum = parse_argument("x-queue-type=quorum").unwrap();
        assert_eq!(quorum, ("x-queue-type".to_owned(), Value::text("quorum")));
        assert_eq!(parse_argument("x-max-length=5").unwrap().1, Value::I64(5));
        assert_eq!(parse_argument("x-single-active-consumer=true").unwrap().1, Value::Bool(true));
        assert!(parse_argument("x-max-length").is_err());
    }
}
