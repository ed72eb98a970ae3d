//! Publishes to an elastic queue and listens to it, in one program: what is published, what comes, what
//! is missing, and which relay it went through.
//!
//! ```sh
//! quelea serve &
//! cargo run -p quelea-elastic-client --example elastic -- --queue prices --messages 100000
//! ```

use std::error::Error;
use std::time::Instant;

use clap::Parser;
use quelea_elastic_client::{Client, Event, Listener, Options};

/// See the file's words.
#[derive(Parser)]
struct Arguments {
    /// A directory.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:5670")]
    directory: String,
    /// The queue; it is made if it is not known.
    #[arg(long, default_value = "example")]
    queue: String,
    /// Messages to publish.
    #[arg(long, default_value_t = 10_000)]
    messages: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let client = Client::connect([arguments.directory], Options::default())?;
    let mut listener = client.listener(&arguments.queue, ["number."]).await?;
    let producer = client.producer(&arguments.queue).await?;
    let began = Instant::now();
    let publish = async {
        for number in 0..arguments.messages {
            producer.publish(format!("number.{}", number % 10), number.to_string()).await?;
        }
        producer.acknowledged().await
    };
    let (published, heard) = tokio::join!(publish, listen(&mut listener, arguments.messages));
    published?;
    let (came, missing) = heard?;
    let seconds = began.elapsed().as_secs_f64();
    let relay = producer.relay().map_or_else(|| "none".to_owned(), |relay| relay.0.to_string());
    println!("{came} messages came and {missing} are missing, in {seconds:.3} s, by relay {relay}");
    producer.close().await?;
    listener.close().await;
    Ok(())
}

/// Takes messages until so many have come or were announced as missing. Returns how many came and
/// how many are missing.
async fn listen(listener: &mut Listener, messages: u64) -> Result<(u64, u64), Box<dyn Error>> {
    let (mut came, mut missing) = (0, 0);
    while came + missing < messages {
        match listener.next().await? {
            Event::Message(_) => came += 1,
            Event::Gap(gap) => {
                missing += gap.to.0 - gap.from.0;
                eprintln!(
                    "messages {} to {} do not come: {:?}",
                    gap.from.0,
                    gap.to.0 - 1,
                    gap.cause
                );
            }
            Event::Notice { text, .. } => eprintln!("{text}"),
        }
    }
    Ok((came, missing))
}
