//! Agreements that contradict themselves are refused by name.

use quelea_elastic_core::sla::Sla;

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
    ];
    for (sla, text) in wrong {
        let error = sla.validate().unwrap_err().to_string();
        assert!(error.starts_with(text), "{error:?} is not {text:?}");
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
