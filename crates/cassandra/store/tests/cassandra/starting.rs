//! What is wrong at the start is said in words that name it.

use quelea_cassandra_store::{CassandraQueues, CassandraSettings, ConnectError};
use scylla::client::session_builder::SessionBuilder;

use crate::site::{Site, settings};

/// Returns the error of a start with these settings.
fn refused(settings: &CassandraSettings) -> ConnectError {
    let connected = Site::shared().runtime.block_on(CassandraQueues::connect(settings));
    connected.err().expect("the settings are wrong")
}

#[test]
fn nodes_that_do_not_answer_are_named() {
    let error = refused(&CassandraSettings { nodes: vec!["127.0.0.1:1".to_owned()], ..settings() });
    assert!(matches!(error, ConnectError::NoAnswer { .. }) && error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
    let error = refused(&CassandraSettings { nodes: vec![], ..settings() });
    assert!(matches!(error, ConnectError::NoNodes), "{error:?}");
}

#[test]
fn a_datacenter_that_is_not_there_is_named_beside_those_that_are() {
    let error =
        refused(&CassandraSettings { datacenter: Some("elsewhere".to_owned()), ..settings() });
    let words = "there is no datacenter `elsewhere` in this cluster, which has datacenter1";
    assert_eq!(error.to_string(), words);
}

#[test]
fn more_replicas_than_nodes_are_refused_where_the_keyspace_is_made() {
    let mut settings = CassandraSettings { replication: 9, ..settings() };
    settings.keyspace.push_str("_replicas");
    let error = refused(&settings);
    assert!(matches!(error, ConnectError::TooFewNodes { replication: 9, .. }), "{error:?}");
}

#[test]
fn a_wrong_password_is_refused() {
    let error = refused(&CassandraSettings {
        user: Some("nobody".to_owned()),
        password_file: None,
        ..settings()
    });
    assert!(
        matches!(error, ConnectError::Unreachable { .. }) && !error.is_transient(),
        "{error:?}"
    );
    assert!(error.to_string().contains("nobody"), "{error}");
}

#[test]
fn a_user_who_may_not_create_is_named_with_what_was_tried() {
    let site = Site::shared();
    let directory =
        std::env::temp_dir().join(format!("quelea-cassandra-test-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let password_file = directory.join("password");
    std::fs::write(&password_file, "reader\n").unwrap();
    site.runtime.block_on(async {
        let CassandraSettings { nodes, user, password_file, .. } = settings();
        let password = std::fs::read_to_string(password_file.unwrap()).unwrap();
        let session = SessionBuilder::new().known_nodes(nodes).user(user.unwrap(), password.trim());
        let query = "CREATE ROLE IF NOT EXISTS reader WITH PASSWORD = 'reader' AND LOGIN = true";
        session.build().await.unwrap().query_unpaged(query, ()).await.unwrap();
    });
    let mut settings = CassandraSettings {
        user: Some("reader".to_owned()),
        password_file: Some(password_file),
        ..settings()
    };
    settings.keyspace.push_str("_rights");
    let error = refused(&settings);
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(matches!(error, ConnectError::NoRight { .. }), "{error:?}");
    let words = error.to_string();
    assert!(words.starts_with("the user `reader` may not create the keyspace"), "{words}");
}

#[test]
fn tls_is_spoken_with_nodes_whose_certificate_is_known() {
    let ca_file = std::env::var("QUELEA_TEST_CASSANDRA_CA").unwrap().into();
    let settings = CassandraSettings { ca_file: Some(ca_file), ..settings() };
    Site::shared().runtime.block_on(CassandraQueues::connect(&settings)).unwrap();
}
