//! The example programs do what they say.

#[path = "../../examples/futures.rs"]
mod futures;
#[path = "../../examples/multicast.rs"]
mod multicast;
#[path = "../../examples/replace.rs"]
mod replace;
#[path = "../../examples/replay.rs"]
mod replay;
#[path = "../../examples/request_response.rs"]
mod request_response;

#[test]
fn replay_sends_again_exactly_what_was_lost() {
    replay::main().unwrap();
}

#[test]
fn replace_sends_what_is_worth_sending_instead() {
    replace::main().unwrap();
}

#[test]
fn every_request_gets_its_own_answer_and_none_is_done_twice() {
    request_response::main().unwrap();
}

#[test]
fn a_future_is_resent_replaced_or_lost() {
    futures::main().unwrap();
}

#[test]
fn a_multicast_reaches_all_who_joined() {
    multicast::main().unwrap();
}
