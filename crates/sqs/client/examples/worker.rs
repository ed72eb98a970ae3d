//! A worker: receives, processes (sleeps, that is), deletes, until SIGTERM or Ctrl-C.
//! `cargo run -p quelea-sqs-client --example worker -- --endpoint http://127.0.0.1:9324 --queue orders`

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use quelea_sqs_client::{Client, Credentials, Endpoint, Stop, Verdict, Worker};

/// Processes the messages of a queue. The access key comes from AWS_ACCESS_KEY_ID and
/// AWS_SECRET_ACCESS_KEY; without one, requests are not signed.
#[derive(Parser)]
struct Options {
    /// The service
    #[arg(long, default_value = "http://127.0.0.1:9324")]
    endpoint: Endpoint,
    /// The queue's name
    #[arg(long)]
    queue: String,
    /// Messages handled at once
    #[arg(long, default_value_t = 4)]
    concurrency: usize,
    /// How long the work on a message takes
    #[arg(long, default_value_t = 100)]
    work_ms: u64,
    /// A message comes back so long after this process died
    #[arg(long, default_value_t = 30)]
    visibility_timeout_s: u32,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let mut client = Client::new(options.endpoint.clone(), Credentials::from_environment()?);
    let queue_url = client.queue_url(&options.queue)?;
    let worker = Worker::new(client, queue_url)
        .concurrency(options.concurrency)
        .visibility_timeout_seconds(options.visibility_timeout_s)
        .back_off(Duration::from_secs(1), Duration::from_secs(60));
    stop_at_a_signal(worker.stop_handle())?;
    let work = Duration::from_millis(options.work_ms);
    let tally = worker.run(|task| {
        // Here stands what is to be done. It may be done twice, so it should do no harm twice.
        std::thread::sleep(work);
        println!("done {}", task.message().body);
        Verdict::Done
    })?;
    eprintln!("{tally:?}");
    Ok(())
}

/// Stops the worker at SIGTERM and Ctrl-C, which let the handlers finish; what they had not begun
/// goes back to the queue.
fn stop_at_a_signal(stop: Stop) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        });
        stop.stop();
    });
    Ok(())
}
