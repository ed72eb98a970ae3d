//! A panic on the core thread.

use std::process::Command;

use quelea_node::PANIC_EXIT_CODE;

use crate::server::{Server, TestDir};

#[test]
fn a_panic_on_the_core_thread_ends_the_process_instead_of_serving_on() {
    let dir = TestDir::new();
    let dies = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "panic::dies_of_a_panic", "--ignored"])
        .env("TMPDIR", dir.path())
        .output()
        .unwrap();
    assert_eq!(dies.status.code(), Some(PANIC_EXIT_CODE), "{dies:?}");
}

#[test]
#[ignore = "ends the whole test process; the test above runs it in one of its own"]
fn dies_of_a_panic() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    server.call(|_| panic!("on purpose"));
}
