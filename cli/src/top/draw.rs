//! The screen: the cluster, the table of jobs, why the chosen job waits, the strip of slots, the keys.
//!
//! The strip has a line for each slot that fits, and a character for each part of the last minute in the colour of the job
//! that ran. Any size of terminal will do.

use super::app::{App, Attempt, NS, SPAN_NS};
use gristmill_runtime::api::{FeedEnd, JobState, JobStatus};
use gristmill_runtime::plural::counted;
use gristmill_scheduler::units::Bytes;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

/// Colours of jobs, of the 256 that terminals know.
const COLOURS: [u8; 10] = [179, 74, 175, 114, 141, 173, 80, 149, 183, 110];
/// Columns of the name of a slot.
const NAME_WIDTH: u16 = 12;
/// Headings of the table of jobs, widths, and true if they are for wide terminals only. The name takes the rest.
const COLUMNS: [(&str, u16, bool); 8] = [
    ("JOB", 7, false),
    ("NAME", 0, false),
    ("STATE", 10, false),
    ("MAPS", 9, false),
    ("SHUFFLE", 7, true),
    ("REDUCES", 8, true),
    ("FLOW", 10, false),
    ("LEFT", 11, true),
];
/// Narrowest terminal with all columns.
const WIDE: u16 = 76;

/// Draws all of it.
pub(super) fn draw(app: &App, frame: &mut Frame<'_>) {
    let area = frame.area();
    let troubles = app.troubles();
    let cluster = 1 + u16::from(!troubles.is_empty());
    let why = if area.height < 12 { 0 } else { 2 };
    let rest = area.height.saturating_sub(cluster + why + 1);
    let jobs =
        u16::try_from(app.jobs.len()).unwrap_or(u16::MAX).saturating_add(2).max(3).min(rest.div_ceil(2));
    let heights = [cluster, jobs, why, rest - jobs, 1].map(Constraint::Length);
    let [cluster, jobs, why, strip, keys] = Layout::vertical(heights).areas(area);
    let troubles = Line::styled(troubles.join("; "), coloured(app, Color::Red)).bold();
    frame.render_widget(Paragraph::new(vec![cluster_line(app, troubles.width() > 0), troubles]), cluster);
    draw_jobs(app, frame, jobs);
    let words = app.chosen().map(|job| why_words(app, job)).unwrap_or_default();
    let words = Paragraph::new(words).wrap(Wrap { trim: true }).style(coloured(app, Color::Cyan));
    frame.render_widget(words, why);
    frame.render_widget(Paragraph::new(strip_lines(app, strip)), strip);
    frame.render_widget(last_line(app), keys);
}

fn cluster_line(app: &App, has_troubles: bool) -> Line<'static> {
    if app.workers.is_empty() {
        return Line::styled(
            "0 workers: start one with `gristmill cluster worker`",
            coloured(app, Color::Yellow),
        );
    }
    let workers = || app.workers.values();
    let slots: u64 = workers().map(|worker| u64::from(worker.slots)).sum();
    let memory: u64 = workers().map(|worker| worker.memory_bytes).sum();
    let budget: u64 = workers().map(|worker| worker.memory_budget_bytes).sum();
    let disk = workers().map(|worker| worker.disk_free_bytes).min().unwrap_or(0);
    let busy: u64 = app.jobs.values().filter(|job| !job.state.ended()).map(running).sum();
    let count = counted(app.workers.len() as u64, "worker", "workers");
    let health = match has_troubles {
        false => Span::styled("healthy", coloured(app, Color::Green)),
        true => Span::styled("see below", coloured(app, Color::Red)),
    };
    let (memory, budget, disk) = (Bytes(memory), Bytes(budget), Bytes(disk));
    let policy = app.master.as_ref().map_or("", |master| master.policy.as_str());
    Line::from(vec![
        Span::raw(format!("{count}  {busy} of {slots} slots  ")).bold(),
        health,
        Span::raw(format!(
            "  policy {policy}  memory {memory} of {budget}  disk free {disk}  up {}",
            short(app.now_ns)
        )),
    ])
}

fn running(job: &JobStatus) -> u64 {
    u64::from(job.maps.running) + u64::from(job.reduces.running)
}

fn draw_jobs(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let jobs = app.sorted_jobs();
    if jobs.is_empty() {
        return frame.render_widget(Paragraph::new("Jobs: none yet: `gristmill submit` sends one"), area);
    }
    let is_shown = |(_, (_, _, is_wide)): &(usize, (&str, u16, bool))| area.width >= WIDE || !is_wide;
    let columns: Vec<_> = COLUMNS.into_iter().enumerate().filter(is_shown).collect();
    let widths = columns.iter().map(|(_, (_, width, _))| match width {
        0 => Constraint::Fill(1),
        width => Constraint::Length(*width),
    });
    let rows = jobs.iter().map(|job| {
        let cells = cells(app, job);
        Row::new(columns.iter().map(|(at, _)| cells[*at].clone()).collect::<Vec<_>>())
    });
    let header = Row::new(columns.iter().map(|(_, (heading, ..))| *heading)).dim();
    let table = Table::new(rows, widths).header(header).row_highlight_style(Style::new().bold().underlined());
    let chosen = app.chosen().map(|job| job.job);
    let selected = jobs.iter().position(|job| Some(job.job) == chosen);
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(selected));
}

/// Cells of a job, in the order of [`COLUMNS`].
fn cells(app: &App, job: &JobStatus) -> [Cell<'static>; 8] {
    let state = match job.state {
        JobState::Succeeded => coloured(app, Color::Green),
        JobState::Failed => coloured(app, Color::Red),
        JobState::Waiting | JobState::Cancelled => coloured(app, Color::Yellow),
        JobState::Running | JobState::Publishing => Style::new(),
    };
    let shuffled =
        (100 * job.totals.shuffle_segments.min(job.segments_total)).checked_div(job.segments_total);
    let flow_ns = job.ended_ns.unwrap_or(app.now_ns).saturating_sub(job.arrived_ns);
    [
        Cell::from(job.job.to_string()).style(coloured(app, colour(job.job.0))),
        Cell::from(job.name.clone()),
        Cell::from(job.state.word()).style(state),
        Cell::from(format!("{}/{}", job.maps.done, job.maps.total)),
        Cell::from(shuffled.map(|percent| format!("{percent} %")).unwrap_or_default()),
        Cell::from(format!("{}/{}", job.reduces.done, job.reduces.total)),
        Cell::from(short(flow_ns)),
        Cell::from(left_ns(app, job).map(|left| format!("~{}", short(left))).unwrap_or_default()),
    ]
}

/// Estimated remaining time of a job at its present rate; `None` if it is not known yet.
fn left_ns(app: &App, job: &JobStatus) -> Option<u64> {
    let (work, started_ns) = (job.work?, job.started_ns?);
    // Slot-seconds of maps and reduces; the shuffle overlaps with them.
    let [whole, left] = [work.whole, work.left].map(|[map, _, reduce]| map + reduce);
    let elapsed_ns = app.now_ns.saturating_sub(started_ns);
    let done = whole - left;
    let is_known = !job.state.ended() && elapsed_ns >= NS && whole.is_finite() && done > 0.02 * whole;
    is_known.then(|| (elapsed_ns as f64 * left.max(0.0) / done) as u64)
}

/// Why a job failed or waits, and its deadline.
fn why_words(app: &App, job: &JobStatus) -> String {
    let mut sentences: Vec<String> = job.failure.iter().map(|failure| failure.message.clone()).collect();
    if let Some(deadline_ns) = job.deadline_ns {
        let at_ns = job.ended_ns.unwrap_or(app.now_ns);
        sentences.push(match at_ns > deadline_ns {
            true => format!("deadline missed by {}", short(at_ns - deadline_ns)),
            false => format!("{} to its deadline", short(deadline_ns - at_ns)),
        });
    }
    let why = app.why.iter().filter(|(id, _)| *id == job.job);
    sentences.extend(why.flat_map(|(_, why)| why.iter().cloned()));
    format!("{}: {}", job.job, sentences.join("; "))
}

/// A title, and as many slots as fit.
fn strip_lines(app: &App, area: Rect) -> Vec<Line<'static>> {
    let all: u64 = app.workers.values().map(|worker| u64::from(worker.slots)).sum();
    let shown = all.min(u64::from(area.height.saturating_sub(1)));
    let title = format!(
        "Slots {shown} of {all}, last minute   \u{2588} map \u{2593} reduce x failed \u{2591} lost \u{2592} suspended"
    );
    let mut lines = vec![Line::raw(title).bold()];
    let cells = u64::from(area.width.saturating_sub(NAME_WIDTH));
    for worker in app.workers.values() {
        if lines.len() >= usize::from(area.height) {
            break;
        }
        for (slot, attempts) in app.slots(worker).iter().enumerate() {
            let name = format!("{} slot {slot}", worker.worker.0);
            let mut spans = vec![Span::raw(format!("{name:<0$}", usize::from(NAME_WIDTH)))];
            spans.extend((0..cells).map(|cell| {
                let from_ns = app.now_ns.saturating_sub(SPAN_NS) + cell * SPAN_NS / cells;
                cell_span(app, attempts, from_ns, from_ns + SPAN_NS / cells)
            }));
            lines.push(Line::from(spans));
        }
    }
    lines
}

/// The attempt that takes most of this time, as a character.
fn cell_span(app: &App, attempts: &[Attempt], from_ns: u64, until_ns: u64) -> Span<'static> {
    let share = |attempt: &&Attempt| {
        let until = attempt.until_ns.unwrap_or(app.now_ns).min(until_ns);
        until.saturating_sub(attempt.from_ns.max(from_ns))
    };
    let Some(attempt) = attempts.iter().max_by_key(share).filter(|attempt| share(attempt) > 0) else {
        return Span::raw("\u{b7}").dim();
    };
    let sign = match attempt.end {
        FeedEnd::Failed => return Span::styled("x", coloured(app, Color::Red)),
        FeedEnd::Lost | FeedEnd::Returned => '\u{2591}',
        FeedEnd::Suspended => '\u{2592}',
        // Without colours a job is its last digit, or for reduces a letter.
        _ if !app.has_colours => {
            char::from(if attempt.is_reduce { b'a' } else { b'0' } + (attempt.job % 10) as u8)
        }
        _ if attempt.is_reduce => '\u{2593}',
        _ => '\u{2588}',
    };
    Span::styled(sign.to_string(), coloured(app, colour(attempt.job)))
}

fn last_line(app: &App) -> Line<'static> {
    let asks = coloured(app, Color::Yellow).bold();
    if let Some(job) = app.question {
        let name = app.jobs.get(&job).map_or("", |job| job.name.as_str());
        return Line::styled(format!("Cancel {job} {name}? y cancels it, any other key does not"), asks);
    }
    match &app.note {
        Some(note) => Line::styled(note.clone(), asks),
        None => Line::raw("q quit  \u{2191}\u{2193} job  c cancel").dim(),
    }
}

fn colour(job: u32) -> Color {
    Color::Indexed(COLOURS[job as usize % COLOURS.len()])
}

/// Style with this colour, where there are colours.
fn coloured(app: &App, colour: Color) -> Style {
    if app.has_colours { Style::new().fg(colour) } else { Style::new() }
}

/// Formats a time in few characters.
fn short(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 0.9995 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 99.95 => format!("{seconds:.1} s"),
        0..6_000 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}
