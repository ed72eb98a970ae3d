//! Queue policies: what they say, and what is no policy.

use core::net::IpAddr;

use quelea_sqs_protocol::{
    Error, ErrorKind, Policy, PolicyCaller, PolicyError, PolicyQuestion, Verdict,
};
use quelea_sqs_protocol::{POLICY_BYTES_MAX, STATEMENTS_MAX};

const QUEUE: &str = "arn:aws:sqs:us-east-1:111122223333:orders";

/// Returns a question: ada of account 444455556666 sends to a queue of 111122223333.
fn question() -> PolicyQuestion<'static> {
    PolicyQuestion {
        caller: Some(PolicyCaller { account: "444455556666", user: Some("ada") }),
        action: "SendMessage",
        resource: QUEUE,
        now_ms: 1_795_273_445_678, // 2026-11-21 15:04:05.678
        source_ip: Some(IpAddr::from([203, 0, 113, 9])),
        secure: false,
        user_agent: Some("Boto3/1.42"),
        source_arn: None,
        source_account: None,
    }
}

/// Returns a policy of one statement: this one with what it lacks of a permission for everybody.
fn policy(statement: &str) -> Result<Policy, PolicyError> {
    let mut text = String::from("{\"Version\":\"2012-10-17\",\"Statement\":[{");
    let defaults = [
        ("Effect", "\"Allow\""),
        ("Principal", "\"*\""),
        ("Action", "\"sqs:*\""),
        ("Resource", "\"*\""),
    ];
    for (name, value) in defaults {
        if !statement.contains(&format!("{name}\":")) {
            text.push_str(&format!("\"{name}\":{value},"));
        }
    }
    text.push_str(statement.trim_end_matches(','));
    let text = text.trim_end_matches(',').to_owned() + "}]}";
    Policy::parse(&text)
}

fn applies(statement: &str, question: &PolicyQuestion<'_>) -> bool {
    let policy = policy(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    policy.evaluate(question) == Verdict::Allow
}

fn check(cases: &[(&str, bool)]) {
    for (statement, expected) in cases {
        assert_eq!(applies(statement, &question()), *expected, "{statement}");
    }
}

#[test]
fn principals_are_everybody_accounts_or_users() {
    check(&[
        (r#""Principal":"*""#, true),
        (r#""Principal":{"AWS":"*"}"#, true),
        (r#""Principal":{"AWS":"444455556666"}"#, true),
        (r#""Principal":{"AWS":"arn:aws:iam::444455556666:root"}"#, true),
        (r#""Principal":{"AWS":["111122223333","arn:aws:iam::444455556666:user/ada"]}"#, true),
        (r#""Principal":{"AWS":"111122223333"}"#, false),
        (r#""Principal":{"AWS":"arn:aws:iam::444455556666:user/bob"}"#, false),
        (r#""Principal":{"AWS":"arn:aws:iam::111122223333:user/ada"}"#, false),
        (r#""Principal":{"AWS":"arn:aws:iam::444455556666:role/ada"}"#, false),
        (r#""Principal":{"Service":"sns.amazonaws.com"}"#, false),
        (r#""NotPrincipal":{"AWS":"111122223333"}"#, true),
        (r#""NotPrincipal":{"AWS":"arn:aws:iam::444455556666:user/ada"}"#, false),
        (r#""NotPrincipal":{"AWS":"444455556666"}"#, false),
    ]);
}

#[test]
fn somebody_without_a_key_is_nobody_but_everybody() {
    let nobody = PolicyQuestion { caller: None, ..question() };
    assert!(applies(r#""Principal":"*""#, &nobody));
    assert!(!applies(r#""Principal":{"AWS":"444455556666"}"#, &nobody));
    assert!(applies(r#""NotPrincipal":{"AWS":"444455556666"}"#, &nobody));
    let null = r#""Condition":{"Null":{"aws:username":"true"}}"#;
    assert!(applies(null, &nobody));
    assert!(!applies(null, &question()));
    let root = PolicyCaller { account: "444455556666", user: None };
    let root = PolicyQuestion { caller: Some(root), ..question() };
    let arn = r#""Condition":{"ArnEquals":{"aws:PrincipalArn":"arn:aws:iam::444455556666:root"}}"#;
    assert!(applies(arn, &root));
    assert!(!applies(r#""Principal":{"AWS":"arn:aws:iam::444455556666:user/ada"}"#, &root));
}

#[test]
fn actions_are_patterns_in_any_case() {
    check(&[
        (r#""Action":"*""#, true),
        (r#""Action":"sqs:*""#, true),
        (r#""Action":"SQS:SendMessage""#, true),
        (r#""Action":["sqs:ReceiveMessage","sqs:sendmessage"]"#, true),
        (r#""Action":"sqs:Send*""#, true),
        (r#""Action":"sqs:SendMessag?""#, true),
        (r#""Action":"sqs:SendMessage?""#, false),
        (r#""Action":"sqs:ReceiveMessage""#, false),
        (r#""Action":"sqs:Send""#, false),
        (r#""NotAction":"sqs:ReceiveMessage""#, true),
        (r#""NotAction":["sqs:Receive*","sqs:SendMessage"]"#, false),
    ]);
}

#[test]
fn resources_are_patterns_in_their_own_case() {
    check(&[
        (r#""Resource":"arn:aws:sqs:us-east-1:111122223333:orders""#, true),
        (r#""Resource":"arn:aws:sqs:*:111122223333:ord*""#, true),
        (r#""Resource":["arn:aws:sqs:us-east-1:111122223333:a","arn:*:*:*:*:orders"]"#, true),
        (r#""Resource":"arn:aws:sqs:us-east-1:111122223333:Orders""#, false),
        (r#""Resource":"arn:aws:sqs:us-east-1:111122223333:order""#, false),
        (r#""Resource":"orders""#, false),
        (r#""Resource":"'$sqs_queue_arn'""#, false),
        (r#""NotResource":"arn:aws:sqs:us-east-1:111122223333:order""#, true),
        (r#""NotResource":"arn:aws:sqs:us-east-1:111122223333:*""#, false),
    ]);
}

#[test]
fn conditions_compare_by_their_operator() {
    check(&[
        (r#""Condition":{"StringEquals":{"aws:username":["bob","ada"]}}"#, true),
        (r#""Condition":{"StringEquals":{"AWS:UserName":"ada"}}"#, true),
        (r#""Condition":{"StringEquals":{"aws:username":"Ada"}}"#, false),
        (r#""Condition":{"StringNotEquals":{"aws:username":["bob","ada"]}}"#, false),
        (r#""Condition":{"StringNotEquals":{"aws:username":"Ada"}}"#, true),
        (r#""Condition":{"StringEqualsIgnoreCase":{"aws:username":"ADA"}}"#, true),
        (r#""Condition":{"StringNotEqualsIgnoreCase":{"aws:username":"ADA"}}"#, false),
        (r#""Condition":{"StringLike":{"aws:UserAgent":"Boto3/*"}}"#, true),
        (r#""Condition":{"StringNotLike":{"aws:UserAgent":"Boto?/*"}}"#, false),
        (r#""Condition":{"StringEquals":{"aws:UserAgent":"Boto3/*"}}"#, false),
        (r#""Condition":{"StringEquals":{"aws:PrincipalAccount":"444455556666"}}"#, true),
        (r#""Condition":{"StringEquals":{"aws:PrincipalAccount":444455556666}}"#, true),
        (r#""Condition":{"StringEquals":{"aws:PrincipalType":"User"}}"#, true),
        (r#""Condition":{"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::*:user/a*"}}"#, true),
        (r#""Condition":{"ArnEquals":{"aws:PrincipalArn":"arn:*:*:*:4444?5556666:*"}}"#, true),
        (r#""Condition":{"ArnLike":{"aws:PrincipalArn":"arn:aws:*:user/ada"}}"#, false),
        (r#""Condition":{"ArnNotLike":{"aws:PrincipalArn":"arn:aws:iam::*:user/b*"}}"#, true),
        (r#""Condition":{"ArnNotEquals":{"aws:PrincipalArn":"arn:aws:iam::*:user/a*"}}"#, false),
        (r#""Condition":{"NumericEquals":{"aws:EpochTime":1795273445}}"#, true),
        (r#""Condition":{"NumericNotEquals":{"aws:EpochTime":"1795273445"}}"#, false),
        (r#""Condition":{"NumericLessThan":{"aws:EpochTime":1795273445}}"#, false),
        (r#""Condition":{"NumericLessThanEquals":{"aws:EpochTime":1795273445}}"#, true),
        (r#""Condition":{"NumericGreaterThan":{"aws:EpochTime":"1795273444.5"}}"#, true),
        (r#""Condition":{"NumericGreaterThanEquals":{"aws:EpochTime":1795273446}}"#, false),
        (r#""Condition":{"NumericEquals":{"aws:username":1}}"#, false),
        (r#""Condition":{"DateEquals":{"aws:CurrentTime":"2026-11-21T15:04:05Z"}}"#, true),
        (r#""Condition":{"DateNotEquals":{"aws:CurrentTime":"2026-11-21T16:04:05+01:00"}}"#, false),
        (r#""Condition":{"DateLessThan":{"aws:CurrentTime":"2026-11-22"}}"#, true),
        (r#""Condition":{"DateLessThanEquals":{"aws:EpochTime":"2026-11-21T15:04:04Z"}}"#, false),
        (r#""Condition":{"DateGreaterThan":{"aws:CurrentTime":"1795273445"}}"#, false),
        (r#""Condition":{"DateGreaterThanEquals":{"aws:CurrentTime":"2026-11-21"}}"#, true),
        (r#""Condition":{"Bool":{"aws:SecureTransport":"False"}}"#, true),
        (r#""Condition":{"Bool":{"aws:SecureTransport":true}}"#, false),
        (r#""Condition":{"IpAddress":{"aws:SourceIp":"203.0.113.0/24"}}"#, true),
        (r#""Condition":{"IpAddress":{"aws:SourceIp":["10.0.0.0/8","203.0.113.9"]}}"#, true),
        (r#""Condition":{"IpAddress":{"aws:SourceIp":"203.0.113.8"}}"#, false),
        (r#""Condition":{"IpAddress":{"aws:SourceIp":"0.0.0.0/0"}}"#, true),
        (r#""Condition":{"IpAddress":{"aws:SourceIp":"2001:db8::/32"}}"#, false),
        (r#""Condition":{"NotIpAddress":{"aws:SourceIp":"203.0.112.0/23"}}"#, false),
        (r#""Condition":{"NotIpAddress":{"aws:SourceIp":["10.0.0.0/8","203.0.114.0/24"]}}"#, true),
    ]);
}

#[test]
fn addresses_of_both_versions_are_compared() {
    let from = |address: &str| PolicyQuestion {
        source_ip: Some(address.parse().expect("an address")),
        ..question()
    };
    let v6 = r#""Condition":{"IpAddress":{"aws:SourceIp":"2001:db8:0:1::/64"}}"#;
    assert!(applies(v6, &from("2001:db8:0:1::7")));
    assert!(!applies(v6, &from("2001:db8:0:2::7")));
    let all_v6 = r#""Condition":{"IpAddress":{"aws:SourceIp":"::/0"}}"#;
    assert!(applies(all_v6, &from("2001:db8::1")));
    let v4 = r#""Condition":{"IpAddress":{"aws:SourceIp":"203.0.113.0/24"}}"#;
    assert!(applies(v4, &from("::ffff:203.0.113.77")), "mapped into IPv6");
    assert!(!applies(r#""Condition":{"IpAddress":{"aws:SourceIp":"0.0.0.0/0"}}"#, &from("::1")));
}

/// A key that the request does not have fits nothing; "not" holds, and so does "if exists".
#[test]
fn a_key_that_is_absent_decides_by_the_operator() {
    check(&[
        (r#""Condition":{"StringEquals":{"aws:SourceAccount":"111122223333"}}"#, false),
        (r#""Condition":{"StringNotEquals":{"aws:SourceAccount":"111122223333"}}"#, true),
        (r#""Condition":{"StringEqualsIfExists":{"aws:SourceAccount":"111122223333"}}"#, true),
        (r#""Condition":{"ArnLikeIfExists":{"aws:SourceArn":"arn:aws:sns:*:*:*"}}"#, true),
        (r#""Condition":{"StringEqualsIfExists":{"aws:username":"bob"}}"#, false),
        (r#""Condition":{"Null":{"aws:SourceArn":"true"}}"#, true),
        (r#""Condition":{"Null":{"aws:SourceArn":false}}"#, false),
        (r#""Condition":{"ForAnyValue:StringEquals":{"aws:SourceAccount":"1"}}"#, false),
        (r#""Condition":{"ForAllValues:StringEquals":{"aws:SourceAccount":"1"}}"#, true),
        (r#""Condition":{"ForAnyValue:StringNotEquals":{"aws:SourceAccount":"1"}}"#, false),
        (r#""Condition":{"ForAllValues:StringLike":{"aws:username":["a*","b*"]}}"#, true),
        (r#""Condition":{"ForAllValues:StringLike":{"aws:username":"b*"}}"#, false),
        (r#""Condition":{"ForAnyValue:StringLike":{"aws:username":"a*"}}"#, true),
        (r#""Condition":{"StringEquals":{"aws:PrincipalOrgID":"o-1"}}"#, false),
    ]);
    let sns = "arn:aws:sns:us-east-1:111122223333:topic";
    let from = PolicyQuestion {
        source_arn: Some(sns),
        source_account: Some("111122223333"),
        ..question()
    };
    assert!(applies(r#""Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:*:topic"}}"#, &from));
    let account = r#""Condition":{"StringEquals":{"aws:SourceAccount":"111122223333"}}"#;
    assert!(applies(account, &from));
}

#[test]
fn all_conditions_have_to_hold() {
    let both = |name: &str, address: &str| {
        format!(
            r#""Condition":{{"StringEquals":{{"aws:username":"{name}","aws:PrincipalType":"User"}},
               "IpAddress":{{"aws:SourceIp":"{address}"}}}}"#
        )
    };
    assert!(applies(&both("ada", "203.0.113.9"), &question()));
    assert!(!applies(&both("bob", "203.0.113.9"), &question()));
    assert!(!applies(&both("ada", "203.0.113.8"), &question()));
}

#[test]
fn a_deny_wins_wherever_it_stands_and_silence_is_neither() {
    let statement = |effect: &str, name: &str| {
        format!(
            r#"{{"Sid":"{effect}-{name}","Effect":"{effect}","Principal":"*","Action":"sqs:{name}",
               "Resource":"{QUEUE}"}}"#
        )
    };
    let ask = |statements: &[String]| {
        let text = format!(r#"{{"Id":"x","Statement":[{}]}}"#, statements.join(","));
        Policy::parse(&text).expect("a policy").evaluate(&question())
    };
    let (allow, deny) = (statement("Allow", "*"), statement("Deny", "SendMessage"));
    let other = statement("Deny", "DeleteMessage");
    assert_eq!(ask(&[allow.clone(), deny.clone()]), Verdict::Deny);
    assert_eq!(ask(&[deny.clone(), allow.clone()]), Verdict::Deny);
    assert_eq!(ask(&[other.clone(), allow]), Verdict::Allow);
    assert_eq!(ask(&[other]), Verdict::Silent);
}

/// What the service writes for AddPermission.
#[test]
fn a_policy_with_one_statement_that_is_no_list_is_read() {
    let text = format!(
        r#"{{"Version":"2008-10-17","Id":"{QUEUE}/SQSDefaultPolicy","Statement":{{"Sid":"label",
           "Effect":"Allow","Principal":{{"AWS":"arn:aws:iam::444455556666:root"}},
           "Action":"SQS:SendMessage","Resource":"{QUEUE}"}}}}"#
    );
    assert_eq!(Policy::parse(&text).expect("a policy").evaluate(&question()), Verdict::Allow);
}

#[test]
fn what_is_no_policy_is_refused_with_the_place() {
    let cases = [
        (r#""Effect":"allow""#, "Statement[0].Effect: it is Allow or Deny"),
        (r#""Principal":"ada""#, "Statement[0].Principal: it is no JSON object"),
        (r#""Principal":{}"#, "Statement[0].Principal: there is none"),
        (r#""Principal":{"AWS":[]}"#, "Statement[0].Principal.AWS: the list is empty"),
        (r#""Principal":{"Aws":"*"}"#, "there is no such kind of principal"),
        (
            r#""Principal":{"AWS":"arn:aws:iam::1:user/*"}"#,
            "'arn:aws:iam::1:user/*' is no principal",
        ),
        (r#""Principal":{"AWS":"arn:aws:sqs:x:1:q"}"#, "is no principal"),
        (r#""Principal":{"AWS":"arn:aws:iam::1:group/g"}"#, "is no principal"),
        (r#""Principal":{"AWS":""}"#, "'' is no principal"),
        (r#""Principal":"*","NotPrincipal":{"AWS":"1"}"#, "it excludes the same element"),
        (r#""Action":"SendMessage""#, "Policy statement action out of service scope!"),
        (r#""Action":"sns:Publish""#, "Policy statement action out of service scope!"),
        (r#""Action":"sqs:""#, "Policy statement action out of service scope!"),
        (r#""Action":{"a":1}"#, "it is neither a text nor a list of texts"),
        (r#""Action":[["sqs:*"]]"#, "it is neither a text nor a list of texts"),
        (r#""Sid":1"#, "Statement[0].Sid: it is no text"),
        (r#""Conditions":{}"#, "Statement[0].Conditions: a statement has no such element"),
        (r#""Condition":[]"#, "Statement[0].Condition: it is no JSON object"),
        (
            r#""Condition":{"StringSame":{"aws:username":"a"}}"#,
            "Statement[0].Condition.StringSame.aws:username: 'StringSame' is no condition operator",
        ),
        (r#""Condition":{"ForSome:Bool":{"aws:username":"a"}}"#, "is no condition operator"),
        (r#""Condition":{"Bool":{"username":"true"}}"#, "'username' is no condition key"),
        (r#""Condition":{"Bool":{"aws:SecureTransport":"yes"}}"#, "'yes' is not true or false"),
        (r#""Condition":{"Bool":{"aws:SecureTransport":[]}}"#, "the list is empty"),
        (r#""Condition":{"Null":{"aws:username":"no"}}"#, "Null takes true or false"),
        (r#""Condition":{"NumericEquals":{"aws:EpochTime":"NaN"}}"#, "'NaN' is not a number"),
        (r#""Condition":{"DateEquals":{"aws:CurrentTime":"soon"}}"#, "'soon' is not a date"),
        (r#""Condition":{"IpAddress":{"aws:SourceIp":"10.0.0.0/33"}}"#, "is not an IP address"),
        (r#""Condition":{"IpAddress":{"aws:SourceIp":"10.0.0/8"}}"#, "is not an IP address"),
    ];
    for (statement, text) in cases {
        let error = policy(statement).expect_err(statement);
        assert!(error.to_string().contains(text), "{statement}: {error}");
        assert_eq!(Error::from(error).kind, ErrorKind::InvalidAttributeValue);
    }
}

#[test]
fn a_statement_without_a_resource_is_about_its_queue() {
    let text = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"*"}}"#;
    assert_eq!(Policy::parse(text).unwrap().evaluate(&question()), Verdict::Allow);
    let denied = text.replace("Allow", "Deny");
    assert_eq!(Policy::parse(&denied).unwrap().evaluate(&question()), Verdict::Deny);
}

#[test]
fn a_document_has_its_form_and_its_limits() {
    let statement =
        format!(r#"{{"Effect":"Allow","Principal":"*","Action":"*","Resource":"{QUEUE}"}}"#);
    let cases = [
        ("", "it is no JSON"),
        ("[]", "Policy: it is no JSON object"),
        ("{}", "Statement: there is none"),
        (r#"{"Statement":[]}"#, "Statement: there is none"),
        (r#"{"Statement":"x"}"#, "Statement[0]: it is no JSON object"),
        (r#"{"Version":"2013-01-01"}"#, "Version: it is 2012-10-17 or 2008-10-17"),
        (r#"{"Statements":[]}"#, "Statements: a policy has no such element"),
    ];
    for (text, reason) in cases {
        let error = Policy::parse(text).expect_err(text);
        assert!(error.to_string().contains(reason), "{text}: {error}");
    }
    for name in ["Effect", "Principal", "Action"] {
        let text = format!(r#"{{"Statement":{}}}"#, statement.replace(name, "Sid"));
        let error = Policy::parse(&text).expect_err(name);
        assert!(error.to_string().contains(&format!("Statement[0].{name}: it is missing")));
    }
    let with = |statements: usize| {
        Policy::parse(&format!(r#"{{"Statement":[{}]}}"#, vec![&*statement; statements].join(",")))
    };
    assert!(with(STATEMENTS_MAX).is_ok());
    let error = with(STATEMENTS_MAX + 1).expect_err("one too many");
    assert_eq!(Error::from(error).kind, ErrorKind::OverLimit);
    let principals =
        |count: usize| policy(&format!(r#""Principal":{{"AWS":{:?}}}"#, vec!["1"; count]));
    assert!(principals(50).is_ok());
    assert!(matches!(principals(51), Err(PolicyError::TooMany { count: 51, max: 50, .. })));
    let conditions = |count: usize| {
        let keys: Vec<_> = (0..count).map(|n| format!(r#""aws:k{n}":"v""#)).collect();
        policy(&format!(r#""Condition":{{"StringLike":{{{}}}}}"#, keys.join(",")))
    };
    assert!(conditions(10).is_ok());
    assert!(matches!(conditions(11), Err(PolicyError::TooMany { count: 11, max: 10, .. })));
    let padded = |bytes: usize| format!("{:bytes$}", format!(r#"{{"Statement":{statement}}}"#));
    assert!(Policy::parse(&padded(POLICY_BYTES_MAX)).is_ok());
    let bytes = POLICY_BYTES_MAX + 1;
    assert_eq!(Policy::parse(&padded(bytes)), Err(PolicyError::TooLong { bytes }));
}
