//! What the screen shows: which list, from which row on, and what was seen last.

use std::collections::VecDeque;

use ratatui::crossterm::event::KeyCode;
use ratatui::widgets::TableState;
use serde_json::Value;

use super::list::{LISTS, List};
use super::snapshot::{Selection, Snapshot, SnapshotResult};

/// Rates that are drawn beside each other.
const SEEN_MAX: usize = 400;

pub(super) struct Screen {
    /// The API's.
    pub(super) address: String,
    wanted: Selection,
    pub(super) last: Option<Snapshot>,
    /// Why the last snapshot failed; what was seen before stays in sight.
    pub(super) trouble: Option<String>,
    /// Messages a second, the newest last.
    pub(super) published: VecDeque<u64>,
    pub(super) delivered: VecDeque<u64>,
    pub(super) place: TableState,
}

impl Screen {
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            wanted: Selection::default(),
            last: None,
            trouble: None,
            published: VecDeque::new(),
            delivered: VecDeque::new(),
            place: TableState::default(),
        }
    }

    pub(super) const fn wanted(&self) -> Selection {
        self.wanted
    }

    pub(super) const fn list(&self) -> &'static List {
        &LISTS[self.wanted.list]
    }

    /// Returns the rows of the list that is shown; none before the first of them have come.
    pub(super) fn rows(&self) -> &[Value] {
        self.of_list().map_or(&[], |last| &last.rows)
    }

    /// Returns why there are no rows.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.of_list().and_then(|last| last.refusal.as_deref())
    }

    fn of_list(&self) -> Option<&Snapshot> {
        self.last.as_ref().filter(|last| last.of.list == self.wanted.list)
    }

    /// Returns a figure of the overview; null before it has come.
    pub(super) fn figure(&self, place: &str) -> &Value {
        self.last.as_ref().and_then(|last| last.overview.pointer(place)).unwrap_or(&Value::Null)
    }

    pub(super) fn take(&mut self, result: SnapshotResult) {
        match result {
            Ok(snapshot) => {
                self.trouble = None;
                self.last = Some(snapshot);
                let rate = |screen: &Self, name: &str| {
                    let place = format!("/message_stats/{name}_details/rate");
                    screen.figure(&place).as_f64().unwrap_or_default().round() as u64
                };
                let (published, delivered) = (rate(self, "publish"), rate(self, "deliver_get"));
                keep(&mut self.published, published);
                keep(&mut self.delivered, delivered);
                let rows = self.rows().len();
                if self.place.selected().is_some_and(|at| at >= rows) {
                    self.place.select(rows.checked_sub(1));
                }
            }
            Err(trouble) => self.trouble = Some(trouble),
        }
    }

    /// What a key does; others do nothing.
    pub(super) fn press(&mut self, key: KeyCode) {
        let (lists, orders) = (LISTS.len(), self.list().orders.len().max(1));
        match key {
            KeyCode::Tab | KeyCode::Right => self.turn_to((self.wanted.list + 1) % lists),
            KeyCode::BackTab | KeyCode::Left => {
                self.turn_to((self.wanted.list + lists - 1) % lists);
            }
            KeyCode::Char('s') => self.wanted.order = (self.wanted.order + 1) % orders,
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::PageDown => self.step(10),
            KeyCode::PageUp => self.step(-10),
            KeyCode::Home => self.step(isize::MIN),
            KeyCode::End => self.step(isize::MAX),
            _ => {}
        }
    }

    fn turn_to(&mut self, list: usize) {
        self.wanted = Selection { list, order: 0 };
        self.place = TableState::default();
    }

    fn step(&mut self, by: isize) {
        let Some(last) = self.rows().len().checked_sub(1) else { return };
        let at = match self.place.selected() {
            Some(at) => at.saturating_add_signed(by).min(last),
            None if by == isize::MAX => last,
            None => 0,
        };
        self.place.select(Some(at));
    }
}

fn keep(seen: &mut VecDeque<u64>, rate: u64) {
    seen.push_back(rate);
    if seen.len() > SEEN_MAX {
        seen.pop_front();
    }
}
