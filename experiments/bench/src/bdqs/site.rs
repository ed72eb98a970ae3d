//! Where replicated queues are measured: nodes of Cassandra, which run already or are started for the run, and front-ends,
//! which are started.

mod front_end;
mod nodes;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bdqs::args::BdqsSiteArgs;
use crate::bdqs::error::BdqsError;
use crate::bdqs::raw_rows::Driver;
use crate::interrupt::Interrupt;
use crate::serve_process;

pub(crate) use front_end::FrontEnd;
pub(crate) use nodes::Nodes;

/// The paper's replication.
const REPLICATION: u32 = 3;

/// Nodes, and what front-ends over them have in common.
#[derive(Debug)]
pub(crate) struct Site {
    contact_points: Vec<String>,
    /// Those that were started here.
    nodes: Option<Nodes>,
    pub replication: u32,
    replication_wanted: Option<u32>,
    keyspace: String,
    settings: Vec<(String, String)>,
    program: PathBuf,
    /// For logs and data; gone at the end.
    home: PathBuf,
    pub interrupt: Interrupt,
    /// What was lost in the keyspace, and can be looked for there.
    lost: AtomicU64,
}

impl Site {
    /// Starts the nodes, if none are named.
    pub(crate) fn open(args: &BdqsSiteArgs, is_small: bool) -> Result<Self, BdqsError> {
        let program = serve_process::program(args.quelea.as_deref())
            .map_err(|error| BdqsError::Start(error.to_string()))?;
        let interrupt = Interrupt::install();
        let home = std::env::temp_dir().join(format!("quelea-bench-{:016x}", fastrand::u64(..)));
        fs::create_dir_all(&home).map_err(|error| BdqsError::System {
            doing: "cannot make a directory for the run",
            reason: error.to_string(),
        })?;
        let mut site = Self {
            contact_points: args.nodes.clone(),
            nodes: None,
            replication: 0,
            replication_wanted: args.replication,
            keyspace: format!("quelea_bench_{:08x}", fastrand::u32(..)),
            settings: args.settings.clone(),
            program,
            home,
            interrupt,
            lost: AtomicU64::new(0),
        };
        if site.contact_points.is_empty() {
            let tests = args.tests.clone().unwrap_or_else(nodes::tests_of_the_build);
            // One node, and no other, is ready in a third of the time.
            let count = if is_small { 1 } else { args.cassandra };
            let nodes = Nodes::start(tests, site.home.join("cassandra"), count)?;
            site.contact_points = nodes.contact_points();
            site.nodes = Some(nodes);
        }
        site.settle_replication();
        Ok(site)
    }

    fn settle_replication(&mut self) {
        let count = u32::try_from(self.contact_points.len()).unwrap_or(REPLICATION);
        self.replication = self.replication_wanted.unwrap_or_else(|| REPLICATION.min(count));
    }

    /// Returns its nodes, if they were started here.
    ///
    /// # Errors
    /// [`BdqsError::NotOurs`].
    pub(crate) fn nodes(&self, experiment: &'static str) -> Result<&Nodes, BdqsError> {
        self.nodes.as_ref().ok_or(BdqsError::NotOurs(experiment))
    }

    /// Ends all nodes, and starts so many others in their place.
    pub(crate) fn start_anew(
        &mut self,
        experiment: &'static str,
        count: u32,
    ) -> Result<(), BdqsError> {
        let nodes = self.nodes.as_mut().ok_or(BdqsError::NotOurs(experiment))?;
        nodes.start_anew(count)?;
        self.contact_points = nodes.contact_points();
        self.settle_replication();
        Ok(())
    }

    /// Returns whether the nodes were started here.
    pub(crate) const fn has_nodes(&self) -> bool {
        self.nodes.is_some()
    }

    pub(crate) fn contact_points(&self) -> &[String] {
        &self.contact_points
    }

    /// So many were lost more: what is stored stays, in nodes that are not ended with the run.
    pub(crate) fn note_lost(&self, count: u64) {
        if self.lost.fetch_add(count, Ordering::Relaxed) == 0 {
            eprintln!("messages were lost: {}", self.where_to_look());
        }
    }

    /// Checks that no messages were lost.
    ///
    /// # Errors
    /// [`BdqsError::Lost`].
    pub(crate) fn check_lost(&self) -> Result<(), BdqsError> {
        match self.lost.load(Ordering::Relaxed) {
            0 => Ok(()),
            lost => Err(BdqsError::Lost { lost, place: self.where_to_look() }),
        }
    }

    fn where_to_look(&self) -> String {
        match &self.nodes {
            None => format!("the keyspaces {}_… stay at these nodes", self.keyspace),
            Some(_) => {
                "the nodes end with the run; with --nodes they could be looked for".to_owned()
            }
        }
    }

    /// Starts front-ends over all nodes.
    pub(crate) fn front_ends(&self, count: u32) -> Result<Vec<FrontEnd>, BdqsError> {
        self.front_ends_over(&self.contact_points, self.replication, count)
    }

    /// Starts front-ends over all nodes that help each other in nothing, as those of the paper.
    pub(crate) fn classic_front_ends(&self, count: u32) -> Result<Vec<FrontEnd>, BdqsError> {
        let classic = ("bdqs.classic".to_owned(), "true".to_owned());
        self.start_front_ends(&self.contact_points, self.replication, count, Some(classic))
    }

    /// Starts front-ends over these nodes, in a keyspace with so many replicas.
    pub(crate) fn front_ends_over(
        &self,
        nodes: &[String],
        replication: u32,
        count: u32,
    ) -> Result<Vec<FrontEnd>, BdqsError> {
        self.start_front_ends(nodes, replication, count, None)
    }

    fn start_front_ends(
        &self,
        nodes: &[String],
        replication: u32,
        count: u32,
        setting: Option<(String, String)>,
    ) -> Result<Vec<FrontEnd>, BdqsError> {
        let keyspace = format!("{}_{replication}", self.keyspace);
        let mut settings = vec![
            ("store".to_owned(), "cassandra".to_owned()),
            ("cassandra.nodes".to_owned(), nodes.join(",")),
            ("cassandra.keyspace".to_owned(), keyspace),
            ("cassandra.replication".to_owned(), replication.to_string()),
        ];
        settings.extend(self.settings.iter().cloned().chain(setting));
        (0..count).map(|_| FrontEnd::start(&self.program, &self.home, &settings)).collect()
    }

    /// Starts a broker with its own log.
    pub(crate) fn broker(&self) -> Result<FrontEnd, BdqsError> {
        let settings = [("amqp.listen", "127.0.0.1:0"), ("elastic.listen", "")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        FrontEnd::start(&self.program, &self.home, &settings)
    }

    /// Connects as front-ends do, for raw rows.
    pub(crate) fn driver(&self) -> Result<Driver, BdqsError> {
        Driver::connect(&self.contact_points)
    }

    /// Returns the bytes of files below the directory of each node that was started here.
    pub(crate) fn stored_bytes(&self) -> Vec<u64> {
        self.nodes
            .as_ref()
            .map(|nodes| nodes.directories().map(|one| bytes_below(&one)).collect())
            .unwrap_or_default()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if self.nodes.take().is_none()
            && self.lost.load(Ordering::Relaxed) == 0
            && let Ok(driver) = self.driver()
        {
            for replication in 1..=9 {
                driver.drop_keyspace(&format!("{}_{replication}", self.keyspace));
            }
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Returns the bytes of the files below a directory. One that goes away meanwhile counts as
/// nothing.
fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => bytes_below(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}
