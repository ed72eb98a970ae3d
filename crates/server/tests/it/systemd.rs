//! `deploy/quelea.service` and the binary agree: its command, its times and what it makes of exit codes.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::broker::{DataDir, Starting};
use crate::client::PATIENCE;

/// Where the unit has the program, its configuration and its data.
const PROGRAM: &str = "/usr/local/bin/quelea";
const CONFIG: &str = "/etc/quelea/quelea.toml";
const STATE: &str = "/var/lib";

fn unit_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/quelea.service")
}

/// Returns the value of a key of the unit, which has it once.
fn value(key: &str) -> String {
    let text = fs::read_to_string(unit_path()).unwrap();
    let keys = text.lines().filter_map(|line| line.split_once('='));
    let values: Vec<_> = keys.filter(|(name, _)| *name == key).map(|(_, value)| value).collect();
    assert_eq!(values.len(), 1, "{key}: {values:?}");
    values[0].to_owned()
}

/// Returns the command of `ExecStart` with a configuration and a data directory in `dir`, or
/// another word in the place of `serve`.
fn exec_start(dir: &DataDir, subcommand: &str) -> Command {
    let line = value("ExecStart");
    let (program, arguments) = line.split_once(' ').unwrap();
    assert_eq!(program, PROGRAM);
    let data = format!("{STATE}/{}", value("StateDirectory"));
    assert!(line.contains(CONFIG) && line.contains(&data), "{line}");
    let config = dir.path().join("quelea.toml");
    let here = |word: &str| match word {
        "serve" => subcommand.to_owned(),
        CONFIG => config.display().to_string(),
        word if word == data => dir.path().join("data").display().to_string(),
        word => word.to_owned(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_quelea"));
    command.args(arguments.split_whitespace().map(here)).current_dir(dir.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn configure(dir: &DataDir, more: &str) {
    let text = "amqp.listen = [\"127.0.0.1:0\"]\nhttp.listen = \"127.0.0.1:0\"\n\
                sqs.listen = [\"127.0.0.1:0\"]\nelastic.listen = \"127.0.0.1:0\"\n";
    fs::write(dir.path().join("quelea.toml"), format!("{more}\n{text}")).unwrap();
}

fn exit_code(mut command: Command) -> i32 {
    command.stderr(Stdio::null()).status().unwrap().code().unwrap()
}

#[test]
fn the_units_command_starts_notifies_and_stops_with_success() {
    let dir = DataDir::new();
    configure(&dir, "");
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = exec_start(&dir, "serve");
    command.env("NOTIFY_SOCKET", &path);
    let Ok(broker) = Starting::run(command).ready_within(PATIENCE) else { panic!("not ready") };
    assert_eq!(value("Type"), "notify");
    let mut message = [0; 256];
    let len = manager.recv(&mut message).unwrap();
    assert!(message[..len].starts_with(b"READY=1"));
    // On failure it is started again, and this is none.
    assert_eq!(value("Restart"), "on-failure");
    assert_eq!(broker.terminate().0.code(), Some(0));
}

#[test]
fn only_what_is_refused_is_not_started_again() {
    let prevented: i32 = value("RestartPreventExitStatus").parse().unwrap();
    for refused in
        ["definitions = \"nowhere.json\"", "bridge.keep_listen = \"x\"", "cmq.routing_key = \"{\""]
    {
        let dir = DataDir::new();
        configure(&dir, &format!("{refused}\ncmq.listen = \"127.0.0.1:0\""));
        assert_eq!(exit_code(exec_start(&dir, "serve")), prevented, "{refused}");
    }
    let dir = DataDir::new();
    configure(&dir, "");
    let first = Starting::run(exec_start(&dir, "serve")).ready_within(PATIENCE);
    assert!(first.is_ok());
    let in_use = exit_code(exec_start(&dir, "serve"));
    assert!(in_use != 0 && in_use != prevented, "{in_use}: the directory may be free later");
}

#[test]
fn the_unit_leaves_a_stop_more_time_than_the_broker_takes() {
    let dir = DataDir::new();
    configure(&dir, "");
    let shown = exec_start(&dir, "config").output().unwrap();
    let shown: toml::Table = String::from_utf8(shown.stdout).unwrap().parse().unwrap();
    let stop_ms = shown["stop_timeout_ms"].as_integer().unwrap();
    let minutes = value("TimeoutStopSec");
    let minutes: i64 = minutes.strip_suffix("min").unwrap().parse().unwrap();
    assert!(stop_ms < minutes * 60_000, "{stop_ms} ms, {minutes} min");
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let dir = DataDir::new();
    let text = fs::read_to_string(unit_path()).unwrap();
    let unit = dir.path().join("quelea.service");
    fs::write(&unit, text.replace(PROGRAM, env!("CARGO_BIN_EXE_quelea"))).unwrap();
    let verify = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output();
    // Where there is no systemd the other tests say what they can.
    let Ok(verified) = verify else { return };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(!said.contains("quelea.service"), "{said}");
}
