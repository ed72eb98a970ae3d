//! Agreements that contradict themselves are refused by name.

use quelea_elastic_core::sla::{Rule, Sla};

#[test]
fn the_default_agreement_holds() {
    assert_eq!(Sla::default().validate(), Ok(()));
    assert_eq!(Sla::default().validate_cost(u64::MAX), Ok(()));
}

#[test]
fn each_contradiction_names_its_field_its_limit_and_its_value() {
    let base = Sla::default;
    let wrong = [
        (Sla { relays_min: 0, ..base() }, "relays_min is 0, the least is 1"),
        (Sla { relays_max: 4_097, ..base() }, "relays_max is 4097, the most is 4096"),
        (Sla { relays_min: 17, ..base() }, "relays_min is 17, relays_max is 16"),
        (Sla { relays_max: 0, ..base() }, "relays_min is 1, relays_max is 0"),
        (Sla { relays_without_budget: 0, ..base() }, "relays_without_budget is 0, the least is 1"),
        (
            Sla { relays_without_budget: 17, ..base() },
            "relays_without_budget is 17, relays_max is 16",
        ),
        (Sla { clients_max: 1, ..base() }, "clients_max is 1, the least is 2"),
        (
            Sla { bytes_in_per_s_max: 99, messages_in_per_s_max: 100, ..base() },
            "bytes_in_per_s_max is 99, messages_in_per_s_max is 100",
        ),
        (
            Sla { memory_percent_max: 101, ..base() },
            "memory_percent_max is 101, the most is 100: there is no more than all of it",
        ),
        (Sla { network_percent_max: 101, ..base() }, "network_percent_max is 101, the most is 100"),
        (Sla { throughput_producers: 0, ..promise() }, "throughput_producers is 0, the least is 1"),
        (Sla { throughput_listeners: 0, ..promise() }, "throughput_listeners is 0, the least is 1"),
        (
            Sla { throughput_payload_bytes: 0, ..promise() },
            "throughput_payload_bytes is 0, the least is 1",
        ),
        (
            Sla { throughput_producers: 200_001, ..promise() },
            "throughput_producers is 200001, the most is 200000",
        ),
        (
            Sla { throughput_listeners: 199_991, ..promise() },
            "throughput_listeners is 199991, the most beside throughput_producers is 199990",
        ),
        (
            Sla { throughput_payload_bytes: 16_777_217, ..promise() },
            "throughput_payload_bytes is 16777217, the most is 16777216",
        ),
        (
            Sla { messages_in_per_s_max: 450, relays_max: 2, ..promise() },
            "throughput_per_s_min is 20000, what relays_max relays carry within the limits of each is 16000: a \
             queue cannot promise more",
        ),
        (
            Sla { messages_in_per_s_max: 99, ..promise() },
            "throughput_per_s_min is 20000, what relays_max relays carry within the limits of each is 0: the part of \
             one of throughput_producers",
        ),
        (
            Sla { clients_max: 20, ..promise() },
            "throughput_per_s_min is 20000, what relays_max relays carry within the limits of each is 0",
        ),
    ];
    for (sla, text) in wrong {
        let error = sla.validate().unwrap_err().to_string();
        assert!(error.starts_with(text), "{error:?} is not {text:?}");
    }
}

/// Returns a promise of 10 producers of 100 messages a second each, to 20 listeners.
fn promise() -> Sla {
    Sla {
        throughput_per_s_min: 20_000,
        throughput_producers: 10,
        throughput_listeners: 20,
        throughput_payload_bytes: 1_000,
        ..Sla::default()
    }
}

#[test]
fn a_promise_that_relays_max_can_keep_is_taken() {
    let sla = Sla { messages_in_per_s_max: 450, relays_max: 3, ..promise() };
    assert_eq!((sla.validate(), sla.relays_fewest()), (Ok(()), 3));
    let unlimited = promise();
    assert_eq!((unlimited.validate(), unlimited.relays_fewest()), (Ok(()), 1));
}

#[test]
fn a_budget_that_does_not_pay_for_the_promise_is_refused() {
    let sla = Sla { messages_in_per_s_max: 450, budget_per_hour_micros: 299, ..promise() };
    let error = sla.validate_cost(100).unwrap_err().to_string();
    let text = "budget_per_hour_micros is 299, the cost of throughput_per_s_min is 300";
    assert!(error.starts_with(text), "{error}");
    assert_eq!(sla.validate_cost(99), Ok(()));
}

#[test]
fn priorities_are_read_by_name_and_each_once() {
    let sla: Sla = toml::from_str("priorities = ['bytes_in', 'memory']").unwrap();
    assert_eq!(sla.priorities.place(Rule::BytesIn), 0);
    assert_eq!(sla.priorities.place(Rule::Memory), 1);
    assert_eq!(sla.priorities.place(Rule::Network), 2);
    for (text, parts) in [
        ("priorities = ['byte_in']", ["`byte_in`", "`bytes_in`"]),
        ("priorities = ['cpu', 'memory', 'cpu']", ["`cpu` stands 2 times", "the most is 1"]),
    ] {
        let error = toml::from_str::<Sla>(text).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn a_budget_that_does_not_pay_for_what_always_runs_is_refused() {
    let sla = Sla { relays_min: 3, budget_per_hour_micros: 299, ..Sla::default() };
    assert_eq!(sla.validate(), Ok(()));
    let error = sla.validate_cost(100).unwrap_err().to_string();
    assert!(
        error.starts_with("budget_per_hour_micros is 299, the cost of relays_min is 300"),
        "{error}"
    );
    assert_eq!(sla.validate_cost(99), Ok(()));
}

#[test]
fn an_agreement_is_read_from_text_with_defaults_and_no_unknown_field() {
    let sla: Sla = toml::from_str("bytes_out_per_s_max = 2_000\nrelays_max = 4").unwrap();
    assert_eq!(sla, Sla { bytes_out_per_s_max: 2_000, relays_max: 4, ..Sla::default() });
    let text = toml::to_string(&sla).unwrap();
    assert_eq!(toml::from_str::<Sla>(&text).unwrap(), sla);
    let error = toml::from_str::<Sla>("relay_max = 4").unwrap_err().to_string();
    assert!(error.contains("relay_max") && error.contains("relays_max"), "{error}");
}
