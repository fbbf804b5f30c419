//! What `top` draws, into memory: what stands where at several sizes, and what keys do. No terminal, no master.
#![allow(clippy::needless_pass_by_value, reason = "values are written where they are passed")]

use super::app::{App, Order, Sort};
use super::draw::draw;
use gristmill_runtime::api::FeedLine;
use gristmill_scheduler::ids::JobId;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

const SECOND: u64 = 1_000_000_000;
/// The master's clock in all that follows.
const NOW: u64 = 100 * SECOND;

fn worker(id: u32, slots: Value) -> Value {
    json!({
        "worker": id, "host": "mill", "pid": 1, "slots": 2, "slot_counts": slots, "speed": 1.0,
        "nic_bytes_per_second": null, "running": 1, "endpoint": {"host": "127.0.0.1", "port": 1, "pin": null}, "memory_budget_bytes": 1 << 30,
        "memory_bytes": 1 << 20, "disk_free_bytes": 5_u64 << 30, "clock_offset_ns": 0, "joined_ns": 1,
    })
}

fn job(id: u32, name: &str, state: &str) -> Value {
    let ended = matches!(state, "succeeded" | "failed" | "cancelled");
    let totals = serde_json::to_value(gristmill_runtime::api::JobTotals::default()).unwrap();
    let attempts = serde_json::to_value(gristmill_runtime::api::AttemptCounts::default()).unwrap();
    json!({
        "schema": 1, "job": id, "name": name, "parameters": "{}", "state": state,
        "maps": {"total": 40, "running": 2, "done": 20}, "reduces": {"total": 4, "running": 0, "done": 0},
        "segments_total": 160, "input_bytes": 0, "input_bytes_read": 0, "arrived_ns": 40 * SECOND,
        "started_ns": if state == "waiting" { Value::Null } else { json!(50 * SECOND) },
        "maps_done_ns": null, "shuffle_done_ns": null,
        "ended_ns": if ended { json!(90 * SECOND) } else { Value::Null }, "now_ns": NOW, "totals": totals,
        "attempts": attempts, "counters": {}, "parts": [], "incidents": [], "incidents_omitted": 0,
        "failure": null, "remarks": [], "workers": 1, "slots": 2, "output": "/out",
        "work": if ended { Value::Null } else { json!({"whole": [40.0, 0.0, 10.0], "left": [20.0, 0.0, 10.0]}) },
    })
}

fn line(workers: Vec<Value>, jobs: Vec<Value>, attempts: Value) -> FeedLine {
    let line = json!({
        "master": {
            "schema": 1, "version": "0.1.0", "build": "", "policy": "gristmill", "placement": "pull",
            "estimator": "history", "now_ns": NOW, "workers": [], "jobs_live": 1,
        },
        "workers": workers, "loads": [], "left": [], "jobs": jobs, "attempts": attempts, "fetches": [], "more": false,
    });
    serde_json::from_value(line).unwrap()
}

fn app(line: FeedLine) -> App {
    let mut app = App::new("admin@0", true);
    app.model.take(line);
    app.now_ns = NOW;
    app
}

/// A worker that has run one map for ten seconds and runs another, with one more queued; two jobs.
fn busy() -> App {
    let attempts = json!([
        [7, 0, 0, 0, 1, 50 * SECOND, 50 * SECOND, 60 * SECOND, "succeeded"],
        [7, 0, 1, 0, 1, 60 * SECOND, 0, 0, "running"],
        [7, 0, 2, 0, 1, 70 * SECOND, 0, 0, "running"],
    ]);
    let workers = vec![worker(1, json!({"unified": 1}))];
    app(line(workers, vec![job(7, "wordcount", "running"), job(8, "sort", "waiting")], attempts))
}

/// What stands on a screen of this size, line by line.
fn screen(app: &App, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_owned()).collect()
}

fn press(app: &mut App, code: KeyCode) -> Option<Order> {
    app.press(KeyEvent::new(code, KeyModifiers::NONE))
}

fn type_text(app: &mut App, text: &str) {
    for character in text.chars() {
        press(app, KeyCode::Char(character));
    }
}

#[test]
fn screen_of_80_columns_shows_cluster_jobs_and_slots() {
    let lines = screen(&busy(), 80, 24);
    let text = lines.join("\n");
    assert!(lines[0].starts_with("gristmill 0.1.0  up 1 min 40 s  policy gristmill"), "{text}");
    assert!(lines[1].starts_with("1 worker  4 of 2 slots  healthy  4 maps 0 reduces"), "{text}");
    assert_eq!(lines[2], "Jobs 2 by state", "{text}");
    let job = lines.iter().find(|line| line.starts_with("job-7")).unwrap_or_else(|| panic!("{text}"));
    // Arrived 60 s ago, began 50 s ago, and 20 of 50 slot-seconds are done.
    for words in ["wordcount", "running", "20/40", "0/4", "60.0 s", "~75.0 s"] {
        assert!(job.contains(words), "{words}: {text}");
    }
    let slot = lines.iter().find(|line| line.starts_with("1 slot 0")).unwrap_or_else(|| panic!("{text}"));
    // The last 60 s in 68 columns: nothing for 10 s, then two maps without a gap.
    assert_eq!(slot.matches('\u{b7}').count(), 11, "{text}");
    assert_eq!((slot.matches('\u{2588}').count(), slot.matches('\u{2590}').count()), (56, 1), "{text}");
    let queued = lines.iter().find(|line| line.starts_with("1 queued")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(queued.matches('\u{2591}').count(), 34, "{text}");
    assert!(lines[23].starts_with("q quit"), "{text}");
}

#[test]
fn screen_of_40_by_10_still_has_workers_jobs_slots_and_keys() {
    let lines = screen(&busy(), 40, 10);
    let text = lines.join("\n");
    assert!(lines[0].starts_with("1 worker  4 of 2 slots  healthy"), "{text}");
    assert!(text.contains("job-7") && text.contains("20/44"), "{text}");
    assert!(text.contains("1 slot 0") && lines[9].starts_with("q quit"), "{text}");
}

#[test]
fn any_size_is_drawn_without_a_panic() {
    let mut app = busy();
    app.question = Some(JobId(7));
    app.lost = Some("no answer".to_owned());
    for width in [1, 2, 7, 12, 13, 39, 75, 76, 130, 300] {
        for height in 1..26 {
            screen(&app, width, height);
        }
    }
}

#[test]
fn cluster_without_workers_says_how_to_start_one() {
    let text = screen(&app(line(Vec::new(), Vec::new(), json!([]))), 80, 24).join("\n");
    assert!(text.contains("0 workers: start one with `gristmill worker`"), "{text}");
    assert!(text.contains("none yet: `gristmill submit` sends one"), "{text}");
}

#[test]
fn pools_have_rows_of_their_own_and_many_slots_are_scrolled() {
    let attempts = json!([[7, 1, 0, 0, 1, 50 * SECOND, 0, 0, "running"]]);
    let workers = (1..=3).map(|id| worker(id, json!({"pools": {"map": 10, "reduce": 1}}))).collect();
    let mut app = app(line(workers, vec![job(7, "a", "running")], attempts));
    let text = screen(&app, 80, 24).join("\n");
    assert!(text.contains("of 33, last"), "{text}");
    let reduce = text.lines().find(|line| line.starts_with("1 red 0")).unwrap_or_else(|| panic!("{text}"));
    assert!(reduce.contains('\u{2593}'), "{text}");
    for _ in 0..20 {
        press(&mut app, KeyCode::PageDown);
    }
    let text = screen(&app, 80, 24).join("\n");
    assert!(text.contains("3 red 0") && text.contains("to 33 of 33"), "{text}");
}

#[test]
fn hostile_names_drive_no_terminal() {
    let name = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\nx";
    let app = app(line(Vec::new(), vec![job(7, name, "running")], json!([])));
    let text = screen(&app, 160, 24).join("");
    assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
    assert!(text.contains("\\u001b]0;owned\\u0007"), "{text}");
}

#[test]
fn troubles_of_the_master_and_its_loss_are_told_in_a_line_of_their_own() {
    let mut told = line(vec![worker(1, json!({"unified": 1}))], Vec::new(), json!([]));
    told.master.trouble = Some("the journal cannot be written: no space left".to_owned());
    let mut app = app(told);
    app.lost = Some("the master could not be reached".to_owned());
    let lines = screen(&app, 160, 24);
    assert!(lines[1].contains("see below"), "{lines:?}");
    assert!(lines[2].starts_with("the master could not be reached; takes no jobs"), "{lines:?}");
    assert!(lines[2].contains("no space left"), "{lines:?}");
}

#[test]
fn cancel_asks_first_and_takes_only_yes() {
    let mut app = busy();
    assert_eq!(press(&mut app, KeyCode::Char('c')), None);
    let text = screen(&app, 80, 24).join("\n");
    assert!(text.contains("Cancel job-7 wordcount? y cancels it"), "{text}");
    assert_eq!(press(&mut app, KeyCode::Char('q')), None, "a key that says no");
    assert_eq!(app.said.as_deref(), Some("job-7 goes on"));
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Char('c'));
    assert_eq!(press(&mut app, KeyCode::Char('y')), Some(Order::Cancel(JobId(8))));
    assert_eq!(press(&mut app, KeyCode::Char('y')), None, "it was asked once");
}

#[test]
fn key_that_may_only_look_is_told_so_instead_of_being_asked() {
    let mut app = App::new("view-projector@0", true);
    app.model.take(line(Vec::new(), vec![job(7, "a", "running")], json!([])));
    assert_eq!(press(&mut app, KeyCode::Char('c')), None);
    assert_eq!(app.question, None);
    let text = screen(&app, 160, 24).join("\n");
    assert!(
        text.contains("the key view-projector@0 may only look: cancelling needs one of the role submit"),
        "{text}"
    );
}

#[test]
fn jobs_are_sorted_reversed_and_filtered_as_asked() {
    let jobs = vec![
        job(1, "zebra", "succeeded"),
        job(2, "mole", "waiting"),
        job(3, "ant", "running"),
        job(4, "bee", "running"),
    ];
    let mut app = app(line(Vec::new(), jobs, json!([])));
    let order = |app: &App| app.jobs().iter().map(|job| job.job.0).collect::<Vec<_>>();
    assert_eq!(order(&app), [4, 3, 2, 1]);
    while app.sort != Sort::Name {
        press(&mut app, KeyCode::Char('s'));
    }
    assert_eq!(order(&app), [3, 4, 2, 1]);
    press(&mut app, KeyCode::Char('r'));
    assert_eq!(order(&app), [1, 2, 4, 3]);
    press(&mut app, KeyCode::Char('/'));
    // Keys go into the filter, also those that mean something elsewhere.
    type_text(&mut app, "ZEBRAq");
    press(&mut app, KeyCode::Backspace);
    press(&mut app, KeyCode::Enter);
    assert_eq!(order(&app), [1]);
    press(&mut app, KeyCode::Esc);
    assert_eq!(order(&app).len(), 4);
}

#[test]
fn q_and_ctrl_c_leave_whatever_is_asked() {
    let mut app = busy();
    assert_eq!(press(&mut app, KeyCode::Char('q')), Some(Order::Quit));
    app.types = true;
    app.question = Some(JobId(7));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.press(control_c), Some(Order::Quit));
}

#[test]
fn model_lets_go_of_what_ended_long_ago_and_of_workers_that_left() {
    let mut app = busy();
    let job = job(7, "wordcount", "succeeded");
    let mut later = line(Vec::new(), vec![job], json!([]));
    later.master.now_ns = NOW + 100 * SECOND;
    later.left = vec![gristmill_scheduler::ids::WorkerId(1)];
    app.model.take(later.clone());
    let worker = &app.model.workers[&gristmill_scheduler::ids::WorkerId(1)];
    assert!(
        worker.live.is_none()
            && worker.lanes.iter().all(|lane| lane.bars.iter().all(|bar| bar.until_ns.is_some()))
    );
    later.master.now_ns = NOW + 3600 * SECOND;
    app.model.take(later);
    assert!(app.model.workers.is_empty());
    for id in 0..1000 {
        app.model.take(line(Vec::new(), vec![self::job(id, "a", "succeeded")], json!([])));
    }
    let ended = app.model.jobs.values().filter(|job| job.state.ended()).count();
    assert_eq!(ended, 500);
}
