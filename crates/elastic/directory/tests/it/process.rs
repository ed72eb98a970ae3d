use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use quelea_elastic_core::directory::{RelayHandle, RelaySpec};
use quelea_elastic_directory::TokenSecret;
use quelea_elastic_directory::provider::process::{ProcessSettings, Processes};
use quelea_elastic_directory::provider::{
    Ended, Provider, ProviderError, ProviderEvent, RelayCommand,
};
use quelea_elastic_proto::RelayId;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use crate::scratch::Scratch;

/// Long for a loaded machine; nothing here takes as long.
const PATIENCE: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(20);

/// A site with a program in the place of `quelea`: it waits for the word as `quelea hold` does.
struct Site {
    scratch: Scratch,
    program: PathBuf,
}

impl Site {
    fn new(body: &str) -> Self {
        let scratch = Scratch::new();
        let program = scratch.path().join("program");
        let script = format!("#!/bin/sh\n[ \"$(head -c 2)\" = go ] || exit 9\n{body}\n");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { scratch, program }
    }

    /// Begins a directory's life, with its provider.
    fn provider(&self) -> Processes {
        Processes::new(ProcessSettings {
            dir: self.scratch.path().join("relays"),
            program: self.program.clone(),
            command: RelayCommand {
                directories: vec!["127.0.0.1:1".to_owned()].into(),
                listen: "127.0.0.1:0".to_owned(),
                key_file: String::new(),
                network_bytes_per_s_max: 0,
                secret: TokenSecret::random().unwrap(),
            },
        })
        .unwrap()
    }

    fn files(&self, ending: &str) -> usize {
        let files = std::fs::read_dir(self.scratch.path().join("relays")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(ending)).count()
    }
}

fn spec(relay: u64, request: &str) -> RelaySpec {
    RelaySpec { relay: RelayId(relay), queue: "prices".to_owned(), request: request.to_owned() }
}

fn pid(handle: &RelayHandle) -> Pid {
    let (pid, _) = handle.name.split_once('@').unwrap();
    Pid::from_raw(pid.parse().unwrap()).unwrap()
}

async fn ended(provider: &Processes) -> Ended {
    match timeout(PATIENCE, provider.event()).await.expect("an event within the time") {
        ProviderEvent::Ended(ended) => ended,
        other => panic!("{other:?}"),
    }
}

/// One thread, as the directory has.
#[tokio::test]
async fn a_request_starts_one_relay_however_often_it_is_made() {
    let site = Site::new("exec sleep 600");
    let provider = site.provider();
    let first = provider.start(&spec(1, "r1")).await.unwrap();
    assert_eq!(provider.start(&spec(1, "r1")).await.unwrap(), first);
    let second = provider.start(&spec(2, "r2")).await.unwrap();
    assert_ne!(first.name, second.name);
    let running = provider.list(Some("prices")).await.unwrap();
    assert_eq!(running.iter().map(|one| &one.handle).collect::<Vec<_>>(), [&first, &second]);
    assert!(provider.list(Some("other")).await.unwrap().is_empty());
    assert_eq!(site.files(".lease"), 2);
    for handle in [&first, &second] {
        provider.stop("prices", handle, GRACE).await.unwrap();
    }
    let (one, other) = (ended(&provider).await, ended(&provider).await);
    assert!(one.handle != other.handle && one.cause.contains("signal 15"), "{one:?} {other:?}");
    assert_eq!((site.files(".lease"), site.files(".log")), (0, 2));
    // A repetition that comes late starts nothing.
    let late = provider.start(&spec(1, "r1")).await.unwrap_err();
    assert!(matches!(late, ProviderError::Ended { request, .. } if request == "r1"));
}

#[tokio::test]
async fn the_next_life_of_a_directory_adopts_what_runs() {
    let site = Site::new("exec sleep 600");
    let before = site.provider();
    let stays = before.start(&spec(1, "r1")).await.unwrap();
    let goes = before.start(&spec(2, "r2")).await.unwrap();
    // Nobody looks any more when it ends.
    drop(before);
    kill_process(pid(&goes), Signal::KILL).unwrap();
    wait_gone(pid(&goes));
    let after = site.provider();
    let reported = ended(&after).await;
    assert_eq!((&reported.handle, reported.queue.as_str()), (&goes, "prices"));
    let running = after.list(None).await.unwrap();
    assert_eq!(running.iter().map(|one| &one.handle).collect::<Vec<_>>(), [&stays]);
    assert_eq!(after.start(&spec(1, "r1")).await.unwrap(), stays, "none is started twice");
    kill_process(pid(&stays), Signal::KILL).unwrap();
    assert_eq!(ended(&after).await.handle, stays, "the end of an adopted one is seen");
    assert_eq!(site.files(".lease"), 0);
}

#[tokio::test]
async fn a_process_of_this_machine_that_is_gone_is_known_to_have_ended() {
    let site = Site::new("exec sleep 600");
    let provider = site.provider();
    let handle = provider.start(&spec(1, "r1")).await.unwrap();
    assert!(!provider.has_ended("prices", &handle).await.unwrap(), "it runs");
    provider.stop("prices", &handle, GRACE).await.unwrap();
    assert_eq!(ended(&provider).await.handle, handle);
    drop(provider);
    // Another life has no lease of it.
    let after = site.provider();
    assert!(after.has_ended("prices", &handle).await.unwrap());
    let (pid, place) = handle.name.split_once('@').unwrap();
    let (_, ticks) = place.rsplit_once('/').unwrap();
    let elsewhere = RelayHandle { name: format!("{pid}@elsewhere/{ticks}"), ..handle.clone() };
    assert!(!after.has_ended("prices", &elsewhere).await.unwrap(), "another machine's");
    let odd = RelayHandle { name: "pod-7".to_owned(), ..handle };
    assert!(!after.has_ended("prices", &odd).await.unwrap());
}

/// Until it is a zombie, or gone: the first life's task may reap it or not.
fn wait_gone(pid: Pid) {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let begun = std::time::Instant::now();
    while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(begun.elapsed() < PATIENCE, "{path} is still there");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_number_that_is_used_again_is_no_relay() {
    let site = Site::new("exec sleep 600");
    let provider = site.provider();
    let handle = provider.start(&spec(1, "r1")).await.unwrap();
    drop(provider);
    // The same number with another start time: somebody else's process.
    let relays = site.scratch.path().join("relays");
    let lease = std::fs::read_dir(&relays).unwrap().map(|file| file.unwrap().path());
    let lease = lease.into_iter().find(|path| path.extension().unwrap() == "lease").unwrap();
    let text = std::fs::read_to_string(&lease).unwrap();
    let (_, ticks) = handle.name.split_once('/').unwrap();
    std::fs::write(&lease, text.replace(ticks, "1")).unwrap();
    let provider = site.provider();
    assert!(provider.list(None).await.unwrap().is_empty());
    assert!(ended(&provider).await.cause.contains("while no directory looked"));
    assert!(std::fs::metadata(format!("/proc/{}", pid(&handle).as_raw_nonzero())).is_ok());
    kill_process(pid(&handle), Signal::KILL).unwrap();
}

#[tokio::test]
async fn one_that_does_not_listen_to_sigterm_is_killed() {
    let site = Site::new("trap '' TERM; echo deaf; while :; do sleep 1; done");
    let provider = site.provider();
    let handle = provider.start(&spec(1, "r1")).await.unwrap();
    let log = site.scratch.path().join("relays");
    while !std::fs::read_dir(&log).unwrap().any(|file| {
        let path = file.unwrap().path();
        path.extension().is_some_and(|ending| ending == "log")
            && std::fs::read_to_string(path).unwrap().contains("deaf")
    }) {
        tokio::task::yield_now().await;
    }
    provider.stop("prices", &handle, Duration::from_millis(1)).await.unwrap();
    // Its last line is no reason: it was not its own end.
    let cause = ended(&provider).await.cause;
    assert_eq!(cause, "signal 9: it had not ended 1 ms after it was asked to");
    // Also one that is not there any more is stopped.
    provider.stop("prices", &handle, GRACE).await.unwrap();
}

#[tokio::test]
async fn the_cause_of_an_end_has_the_last_line_that_it_wrote() {
    let site = Site::new("echo one; echo 'cannot listen on 1.2.3.4:5' >&2; exit 3");
    let provider = site.provider();
    provider.start(&spec(1, "r1")).await.unwrap();
    assert_eq!(ended(&provider).await.cause, "exit code 3: cannot listen on 1.2.3.4:5");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_refused_by_its_path() {
    let mut site = Site::new("");
    site.program = site.scratch.path().join("nothing here");
    let refused = site.provider().start(&spec(1, "r1")).await.unwrap_err();
    assert!(matches!(refused, ProviderError::Refused { .. }));
    assert!(refused.to_string().contains("nothing here"), "{refused}");
    assert_eq!(site.files(".lease"), 0);
}
