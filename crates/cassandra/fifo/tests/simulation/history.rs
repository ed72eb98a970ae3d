//! What happened, and what of it a FIFO queue cannot do.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A send was begun.
    SendBegan {
        id: String,
    },
    /// It was confirmed with that number.
    Sent {
        id: String,
        group: String,
        number: u64,
    },
    /// An owner gave these out, in order, in one receive: groups, numbers, deduplication ids.
    Received(Vec<(String, u64, String)>),
    DeleteBegan {
        number: u64,
    },
    Deleted {
        number: u64,
    },
}

#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) events: Vec<Event>,
}

impl History {
    pub(crate) fn add(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Returns what is wrong, in words. The queue is empty at the end.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        self.numbers_follow_sends(&mut faults);
        self.an_id_is_one_message(&mut faults);
        self.nothing_is_lost(&mut faults);
        self.groups_are_in_order(&mut faults);
        self.the_deleted_stay_away(&mut faults);
        faults
    }

    /// A message that was confirmed before another was sent has the smaller number.
    fn numbers_follow_sends(&self, faults: &mut Vec<String>) {
        let mut largest = 0;
        let mut began: BTreeMap<&str, u64> = BTreeMap::new();
        for event in &self.events {
            match event {
                Event::SendBegan { id } => {
                    began.entry(id).or_insert(largest);
                }
                Event::Sent { id, number, .. } => {
                    if began.get(id.as_str()).is_some_and(|largest| number <= largest) {
                        faults.push(format!(
                            "{id} has {number}, though {largest} was confirmed before"
                        ));
                    }
                    largest = largest.max(*number);
                }
                _ => {}
            }
        }
    }

    fn an_id_is_one_message(&self, faults: &mut Vec<String>) {
        let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
        let received = self.events.iter().flat_map(|event| match event {
            Event::Received(messages) => {
                messages.iter().map(|(_, number, id)| (id.as_str(), *number)).collect()
            }
            Event::Sent { id, number, .. } => vec![(id.as_str(), *number)],
            _ => Vec::new(),
        });
        for (id, number) in received {
            let known = *numbers.entry(id).or_insert(number);
            if known != number {
                faults.push(format!("{id} is {known} and {number}"));
            }
        }
    }

    fn nothing_is_lost(&self, faults: &mut Vec<String>) {
        let received: BTreeSet<u64> = self.received().map(|(_, number)| number).collect();
        for event in &self.events {
            if let Event::Sent { id, number, .. } = event
                && !received.contains(number)
            {
                faults.push(format!("{id}, {number}, was confirmed and never received"));
            }
        }
    }

    fn received(&self) -> impl Iterator<Item = (&str, u64)> {
        self.events.iter().flat_map(|event| {
            let messages = match event {
                Event::Received(messages) => messages.as_slice(),
                _ => &[],
            };
            messages.iter().map(|(group, number, _)| (group.as_str(), *number))
        })
    }

    /// A message is received only if all before it in its group are being deleted, or come in the same receive; and then
    /// those before it do not come again, unless in the same receive.
    fn groups_are_in_order(&self, faults: &mut Vec<String>) {
        let mut all: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        self.received().for_each(|(group, number)| {
            all.entry(group).or_default().insert(number);
        });
        let mut deleting: BTreeSet<u64> = BTreeSet::new();
        let mut passed: BTreeSet<u64> = BTreeSet::new();
        for event in &self.events {
            match event {
                Event::DeleteBegan { number } => {
                    deleting.insert(*number);
                }
                Event::Received(messages) => {
                    for (at, (group, number, _)) in messages.iter().enumerate() {
                        if passed.contains(number) {
                            faults.push(format!("{number} came after one behind it in {group}"));
                        }
                        for before in all[group.as_str()].range(..number) {
                            if messages[..at].iter().any(|(_, number, _)| number == before) {
                                continue;
                            }
                            if !deleting.contains(before) {
                                faults.push(format!("{number} came before {before} of {group}"));
                            }
                            passed.insert(*before);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn the_deleted_stay_away(&self, faults: &mut Vec<String>) {
        let mut deleted: BTreeSet<u64> = BTreeSet::new();
        for event in &self.events {
            match event {
                Event::Deleted { number } => {
                    deleted.insert(*number);
                }
                Event::Received(messages) => {
                    for (_, number, _) in messages {
                        if deleted.contains(number) {
                            faults.push(format!("{number} was deleted and came again"));
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(numbers: &[u64]) -> Event {
        let one = |number: &u64| ("g".to_owned(), *number, format!("id{number}"));
        Event::Received(numbers.iter().map(one).collect())
    }

    fn faults(events: Vec<Event>) -> usize {
        History { events }.faults().len()
    }

    #[test]
    fn what_a_fifo_queue_cannot_do_is_found() {
        let deleted = |number| [Event::DeleteBegan { number }, Event::Deleted { number }];
        assert_eq!(faults(vec![received(&[1, 2]), received(&[1, 2])]), 0);
        assert!(faults(vec![received(&[1]), received(&[2])]) > 0, "the first is not deleted");
        let [began, ended] = deleted(1);
        assert_eq!(faults(vec![received(&[1]), began.clone(), ended.clone(), received(&[2])]), 0);
        assert!(faults(vec![received(&[1]), began.clone(), received(&[2]), received(&[1])]) > 0);
        assert!(faults(vec![received(&[1]), began, ended, received(&[1])]) > 0, "it was deleted");
        let sent = |id: &str, number| Event::Sent { id: id.into(), group: "g".into(), number };
        assert!(faults(vec![sent("id1", 1)]) > 0, "it is lost");
        assert!(faults(vec![sent("id1", 1), sent("id1", 2), received(&[1, 2])]) > 0);
    }
}
