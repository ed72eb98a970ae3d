//! `quelea admin top`: what goes on in a broker, live in the terminal. One thread asks the API, this one draws and reads
//! keys, so that a broker that does not answer does not hold up the keys.

mod list;
mod screen;
mod snapshot;
mod view;

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::screen::Screen;
use self::snapshot::{Selection, SnapshotResult, poll_snapshots};
use super::AdminError;
use super::client::Client;
use super::sqs::Account;
use super::table::Output;

/// How long a key is waited for before it is looked whether there is something new to draw.
const KEY_WAIT: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Time between two looks at the broker, in milliseconds.
    #[arg(
        long,
        default_value_t = 2_000,
        value_parser = clap::value_parser!(u64).range(100..=3_600_000)
    )]
    interval_ms: u64,
    /// Whose replicated queues are shown.
    #[command(flatten)]
    account: Account,
}

/// Shows the broker until the user has seen enough.
///
/// # Errors
/// If standard output is no terminal, or the terminal fails. A broker that does not answer is no error: it may come back.
pub(crate) fn run(args: TopArgs, client: Client, output: Output) -> Result<(), AdminError> {
    if output == Output::Json || !io::stdout().is_terminal() {
        return Err(AdminError::NoTerminal);
    }
    let (selection_sender, selections) = channel();
    let (sender, receiver) = channel();
    let interval = Duration::from_millis(args.interval_ms);
    let address = client.address().to_owned();
    // It ends with the process, or when nobody listens to it.
    thread::spawn(move || {
        poll_snapshots(&client, &args.account, interval, &selections, &sender);
    });
    let terminal = ratatui::try_init().map_err(AdminError::Terminal)?;
    let shown = show(terminal, Screen::new(address), &selection_sender, &receiver);
    ratatui::restore();
    shown.map_err(AdminError::Terminal)
}

fn show(
    mut terminal: DefaultTerminal,
    mut screen: Screen,
    selection_sender: &Sender<Selection>,
    receiver: &Receiver<SnapshotResult>,
) -> io::Result<()> {
    // The other thread lives as long as this one.
    let _ = selection_sender.send(screen.wanted());
    let mut is_stale = true;
    loop {
        for result in receiver.try_iter() {
            screen.take(result);
            is_stale = true;
        }
        if is_stale {
            terminal.draw(|frame| view::draw(frame, &mut screen))?;
            is_stale = false;
        }
        if !event::poll(KEY_WAIT)? {
            continue;
        }
        is_stale = true;
        let Event::Key(key) = event::read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        let wanted = screen.wanted();
        if is_end(key) {
            return Ok(());
        }
        screen.press(key.code);
        if screen.wanted() != wanted {
            let _ = selection_sender.send(screen.wanted());
        }
    }
}

fn is_end(key: KeyEvent) -> bool {
    let is_control_c =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}
