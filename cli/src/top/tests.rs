//! Drawings of `top` in memory: the layout at several sizes, and the effects of keys. No terminal, no master.
#![allow(clippy::needless_pass_by_value, reason = "values are written where they are passed")]

use super::app::{App, Order};
use super::draw::draw;
use gristmill_runtime::api::FeedLine;
use gristmill_scheduler::ids::JobId;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

const SECOND: u64 = 1_000_000_000;
/// The master's clock in all tests.
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
        "workers": workers, "left": [], "jobs": jobs, "attempts": attempts, "fetches": [], "more": false,
    });
    serde_json::from_value(line).unwrap()
}

fn app(line: FeedLine) -> App {
    let mut app = App::new("admin@0", true);
    app.take(line, true);
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

/// Returns the screen of this size, line by line.
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

#[test]
fn screen_of_80_columns_shows_cluster_jobs_and_slots() {
    let lines = screen(&busy(), 80, 24);
    let text = lines.join("\n");
    assert!(
        lines[0].starts_with("1 worker  4 of 2 slots  healthy  policy gristmill  memory 1.0 MiB of"),
        "{text}"
    );
    assert!(lines[1].starts_with("JOB     NAME"), "{text}");
    let job = lines.iter().find(|line| line.starts_with("job-7")).unwrap_or_else(|| panic!("{text}"));
    // Arrived 60 s ago, started 50 s ago, and 20 of 50 slot-seconds are done.
    for words in ["wordcount", "running", "20/40", "0/4", "60.0 s", "~75.0 s"] {
        assert!(job.contains(words), "{words}: {text}");
    }
    let slot = lines.iter().find(|line| line.starts_with("1 slot 0")).unwrap_or_else(|| panic!("{text}"));
    // The last 60 s in 68 columns: nothing for 10 s, then two maps without a gap. A third is queued and not shown.
    assert_eq!((slot.matches('\u{b7}').count(), slot.matches('\u{2588}').count()), (11, 57), "{text}");
    assert!(lines[23].starts_with("q quit"), "{text}");
}

#[test]
fn screen_of_40_by_10_still_has_workers_jobs_slots_and_keys() {
    let lines = screen(&busy(), 40, 10);
    let text = lines.join("\n");
    assert!(lines[0].starts_with("1 worker  4 of 2 slots  healthy"), "{text}");
    assert!(text.contains("job-7") && text.contains("20/40"), "{text}");
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
    assert!(text.contains("0 workers: start one with `gristmill cluster worker`"), "{text}");
    assert!(text.contains("none yet: `gristmill submit` sends one"), "{text}");
}

#[test]
fn attempts_are_shown_in_the_slot_that_was_free_and_suspended_ones_give_it_back() {
    let attempts = json!([
        [7, 0, 0, 0, 1, 50 * SECOND, 50 * SECOND, 60 * SECOND, "succeeded"],
        [7, 1, 0, 0, 1, 50 * SECOND, 50 * SECOND, 0, "running"],
        [7, 0, 1, 0, 1, 60 * SECOND, 0, 0, "suspended"],
        [7, 0, 2, 0, 1, 99 * SECOND, 0, 0, "running"],
    ]);
    let app = app(line(vec![worker(1, json!({"unified": 2}))], vec![job(7, "a", "running")], attempts));
    let worker = &app.workers[&gristmill_scheduler::ids::WorkerId(1)];
    let starts: Vec<Vec<u64>> =
        app.slots(worker).iter().map(|slot| slot.iter().map(|bar| bar.from_ns / SECOND).collect()).collect();
    assert_eq!(starts, [vec![50, 60, 100], vec![50]]);
    let text = screen(&app, 80, 24).join("\n");
    let [maps, reduces] =
        ["1 slot 0", "1 slot 1"].map(|name| text.lines().find(|line| line.starts_with(name)).unwrap());
    assert!(maps.contains('\u{2588}') && maps.contains('\u{2592}') && reduces.contains('\u{2593}'), "{text}");
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
    assert!(lines[0].contains("see below"), "{lines:?}");
    assert!(lines[1].starts_with("the master could not be reached; accepts no jobs"), "{lines:?}");
    assert!(lines[1].contains("no space left"), "{lines:?}");
}

#[test]
fn cancel_asks_first_and_takes_only_yes() {
    let mut app = busy();
    assert_eq!(press(&mut app, KeyCode::Char('c')), None);
    let text = screen(&app, 80, 24).join("\n");
    assert!(text.contains("Cancel job-7 wordcount? y cancels it"), "{text}");
    assert_eq!(press(&mut app, KeyCode::Char('q')), None, "a key that says no");
    assert_eq!(app.note.as_deref(), Some("job-7 continues"));
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Char('c'));
    assert_eq!(press(&mut app, KeyCode::Char('y')), Some(Order::Cancel(JobId(8))));
    assert_eq!(press(&mut app, KeyCode::Char('y')), None, "it was asked once");
}

#[test]
fn key_that_may_only_look_is_told_so_instead_of_being_asked() {
    let mut app = App::new("view-projector@0", true);
    app.take(line(Vec::new(), vec![job(7, "a", "running")], json!([])), true);
    assert_eq!(press(&mut app, KeyCode::Char('c')), None);
    assert_eq!(app.question, None);
    let text = screen(&app, 160, 24).join("\n");
    assert!(
        text.contains("the token view-projector@0 is read-only: cancelling needs one of the role submit"),
        "{text}"
    );
}

#[test]
fn q_and_ctrl_c_leave_whatever_is_asked() {
    let mut app = busy();
    assert_eq!(press(&mut app, KeyCode::Char('q')), Some(Order::Quit));
    app.question = Some(JobId(7));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.press(control_c), Some(Order::Quit));
}

#[test]
fn ended_jobs_old_attempts_and_workers_that_left_are_dropped() {
    let mut app = busy();
    let mut later = line(Vec::new(), vec![job(7, "wordcount", "succeeded")], json!([]));
    later.master.now_ns = NOW + 100 * SECOND;
    let worker = app.workers[&gristmill_scheduler::ids::WorkerId(1)].clone();
    app.take(later.clone(), false);
    assert!(
        app.slots(&worker).iter().all(Vec::is_empty),
        "they ended with their job, more than a minute ago"
    );
    later.left = vec![worker.worker];
    app.take(later, false);
    assert!(app.workers.is_empty());
    for id in 0..1000 {
        app.take(line(Vec::new(), vec![job(id, "a", "succeeded")], json!([])), false);
    }
    assert_eq!(app.jobs.values().filter(|job| job.state.ended()).count(), 500);
}
