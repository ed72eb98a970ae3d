//! Draws the screen.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, Tabs};
use serde_json::Value;

use super::list::{Column, Form, LISTS, shown};
use super::screen::Screen;

/// What stands on top: a name, where it is in the overview, its form.
const FIGURES: [(&str, &str, Form); 8] = [
    ("queues", "/object_totals/queues", Form::Count),
    ("connections", "/object_totals/connections", Form::Count),
    ("consumers", "/object_totals/consumers", Form::Count),
    ("ready", "/queue_totals/messages_ready", Form::Count),
    ("unacked", "/queue_totals/messages_unacknowledged", Form::Count),
    ("in/s", "/message_stats/publish_details/rate", Form::Rate),
    ("out/s", "/message_stats/deliver_get_details/rate", Form::Rate),
    ("acked/s", "/message_stats/ack_details/rate", Form::Rate),
];

/// A column of numbers; texts share the rest.
const NUMBER_WIDTH: u16 = 10;

pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let [head, figures, rates, tabs, list, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(head_of(screen), head);
    frame.render_widget(figures_of(screen), figures);
    let [published, delivered] = Layout::horizontal([Constraint::Fill(1); 2]).areas(rates);
    draw_rates(frame, "published a second", &screen.published, published);
    draw_rates(frame, "delivered a second", &screen.delivered, delivered);
    let titles = LISTS.iter().map(|list| list.title);
    frame.render_widget(Tabs::new(titles).select(screen.wanted().list), tabs);
    draw_list(frame, screen, list);
    let help = " q end   Tab next list   s next order   ↑ ↓ PgUp PgDn rows";
    frame.render_widget(Paragraph::new(help).dim(), keys);
}

/// Returns which broker it is, and what is wrong with it.
fn head_of(screen: &Screen) -> Line<'_> {
    let text = |place| shown(screen.figure(place), Form::Text);
    let mut line = Line::from(vec![
        Span::from(" Quelea ").bold(),
        Span::from(format!("{} {} ", text("/product_version"), text("/node"))),
        Span::from(format!("at {}  ", screen.address)).dim(),
    ]);
    let blocked = screen.figure("/publishers_blocked").as_str();
    let unreadable = screen.figure("/queue_totals/messages_unreadable").as_u64().unwrap_or(0);
    if let Some(trouble) = &screen.trouble {
        line.push_span(Span::from(trouble.as_str()).red().bold());
    } else if let Some(reason) = blocked {
        line.push_span(Span::from(format!("publishers are blocked: {reason}")).red().bold());
    } else if unreadable > 0 {
        line.push_span(Span::from(format!("{unreadable} messages cannot be read")).red().bold());
    }
    line
}

fn figures_of(screen: &Screen) -> Line<'_> {
    let mut line = Line::from(" ");
    for (name, place, form) in FIGURES {
        line.push_span(Span::from(name).dim());
        line.push_span(Span::from(format!(" {}   ", shown(screen.figure(place), form))).bold());
    }
    line
}

fn draw_rates(frame: &mut Frame<'_>, title: &str, seen: &VecDeque<u64>, area: Rect) {
    let most = seen.iter().max().copied().unwrap_or(0);
    let block = Block::bordered().title(format!(" {title}, at most {most} ")).dim();
    let width = usize::from(block.inner(area).width);
    // The newest is at the right.
    let newest = seen.iter().skip(seen.len().saturating_sub(width)).copied();
    frame.render_widget(Sparkline::default().block(block).data(newest), area);
}

fn draw_list(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let list = screen.list();
    let order = list.orders.get(screen.wanted().order).map_or("", |(name, _)| name);
    if let Some(reason) = screen.refusal() {
        frame.render_widget(Paragraph::new(format!(" {reason}")), area);
        return;
    }
    let title = |column: &Column| {
        let mark = if column.title == order { "▼" } else { "" };
        cell(format!("{}{mark}", column.title), column.form)
    };
    let header = Row::new(list.columns.iter().map(title)).style(Style::new().bold());
    let row = |object: &Value| {
        Row::new(list.columns.iter().map(|column| cell(column.cell(object), column.form)))
    };
    let widths = list.columns.iter().map(|column| match column.form {
        Form::Name => Constraint::Fill(4),
        Form::Text => Constraint::Fill(1),
        _ => Constraint::Length(NUMBER_WIDTH),
    });
    let rows: Vec<Row<'_>> = screen.rows().iter().map(row).collect();
    let table = Table::new(rows, widths)
        .header(header)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut screen.place);
}

fn cell(text: String, form: Form) -> Cell<'static> {
    let line = Line::from(text);
    Cell::from(if matches!(form, Form::Name | Form::Text) { line } else { line.right_aligned() })
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::KeyCode;
    use serde_json::json;

    use super::super::snapshot::{Selection, Snapshot};
    use super::*;

    fn drawn(screen: &mut Screen) -> String {
        let mut terminal = Terminal::new(TestBackend::new(120, 16)).unwrap();
        terminal.draw(|frame| draw(frame, screen)).unwrap();
        terminal.backend().to_string()
    }

    fn snapshot(of: Selection, rows: Vec<Value>) -> Snapshot {
        let overview = json!({
            "node": "quelea@here", "product_version": "0.1.0",
            "queue_totals": { "messages_ready": 12 },
            "message_stats": { "publish_details": { "rate": 34.5 } },
        });
        Snapshot { overview, of, rows, refusal: None }
    }

    #[test]
    fn what_the_broker_says_is_in_sight() {
        let mut screen = Screen::new("127.0.0.1:15672".to_owned());
        assert!(drawn(&mut screen).contains("127.0.0.1:15672"));
        let row = json!({ "vhost": "/", "name": "orders", "messages_ready": 12, "memory": 2_048 });
        screen.take(Ok(snapshot(Selection::default(), vec![row])));
        let text = drawn(&mut screen);
        for part in ["quelea@here", "orders", "ready▼", "34.5", "2.0 KiB"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        screen.take(Err("the broker is gone".to_owned()));
        let text = drawn(&mut screen);
        assert!(text.contains("the broker is gone") && text.contains("orders"), "{text}");
    }

    #[test]
    fn keys_turn_to_other_lists_orders_and_rows() {
        let mut screen = Screen::new(String::new());
        let rows = vec![json!({ "name": "a" }), json!({ "name": "b" })];
        screen.take(Ok(snapshot(Selection::default(), rows)));
        screen.press(KeyCode::End);
        assert_eq!(screen.place.selected(), Some(1));
        screen.press(KeyCode::Home);
        assert_eq!(screen.place.selected(), Some(0));
        screen.press(KeyCode::Char('s'));
        assert_eq!(screen.wanted(), Selection { list: 0, order: 1 });
        assert!(drawn(&mut screen).contains("unacked▼"));
        screen.press(KeyCode::Tab);
        assert_eq!(screen.wanted(), Selection { list: 1, order: 0 });
        assert!(screen.rows().is_empty(), "they are of another list");
        screen.press(KeyCode::BackTab);
        screen.press(KeyCode::BackTab);
        let last = LISTS.len() - 1;
        assert_eq!(screen.wanted(), Selection { list: last, order: 0 });
        screen.press(KeyCode::Char('s'));
        assert_eq!(screen.wanted(), Selection { list: last, order: 0 });
        // Fewer rows than before: the mark is on one that is there.
        let of = screen.wanted();
        screen.take(Ok(snapshot(of, vec![json!({}), json!({})])));
        screen.press(KeyCode::End);
        screen.take(Ok(snapshot(of, vec![json!({})])));
        assert_eq!(screen.place.selected(), Some(0));
    }

    #[test]
    fn a_terminal_of_any_size_will_do() {
        let mut screen = Screen::new("address".to_owned());
        screen.take(Ok(snapshot(Selection::default(), vec![json!({ "name": "a" })])));
        for (width, height) in [(1, 1), (3, 40), (200, 2), (20, 5)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &mut screen)).unwrap();
        }
    }
}
