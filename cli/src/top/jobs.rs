//! The table of jobs, with as many columns as there is room for.

use super::app::App;
use super::draw::{Pen, colour, deadline, short, style_of};
use gristmill_runtime::api::{JobState, JobStatus, TaskCounts};
use ratatui::style::{Color, Modifier, Style};

/// What a column shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Job,
    Name,
    State,
    Maps,
    Shuffle,
    Reduces,
    /// Maps and reduces in one bar.
    Tasks,
    Flow,
    Left,
    Deadline,
}

/// Column, heading, width. The name takes what is left.
type Shown = (Column, &'static str, u16);

const NARROW: [Shown; 5] = [
    (Column::Job, "JOB", 6),
    (Column::Name, "NAME", 0),
    (Column::State, "STATE", 5),
    (Column::Tasks, "TASKS", 9),
    (Column::Flow, "FLOW", 8),
];
const USUAL: [Shown; 8] = [
    (Column::Job, "JOB", 7),
    (Column::Name, "NAME", 0),
    (Column::State, "STATE", 10),
    (Column::Maps, "MAPS", 9),
    (Column::Shuffle, "SHUFFLE", 7),
    (Column::Reduces, "REDUCES", 8),
    (Column::Flow, "FLOW", 10),
    (Column::Left, "LEFT", 11),
];
const WIDE: [Shown; 9] = [
    (Column::Job, "JOB", 8),
    (Column::Name, "NAME", 0),
    (Column::State, "STATE", 10),
    (Column::Maps, "MAPS", 18),
    (Column::Shuffle, "SHUFFLE", 8),
    (Column::Reduces, "REDUCES", 18),
    (Column::Flow, "FLOW", 12),
    (Column::Left, "LEFT", 12),
    (Column::Deadline, "DEADLINE", 26),
];

fn columns(width: u16) -> &'static [Shown] {
    match width {
        0..76 => &NARROW,
        76..130 => &USUAL,
        _ => &WIDE,
    }
}

/// A title, headings, and as many jobs as fit, the chosen one among them.
pub(super) fn draw(app: &App, mut pen: Pen<'_>) {
    let jobs = app.jobs();
    let (width, height) = (pen.area.width, pen.area.height);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut title = format!("Jobs {} by {}", jobs.len(), app.sort.word());
    if app.reversed {
        title.push_str(" reversed");
    }
    if !app.filter.is_empty() {
        title.push_str(&format!(" with \u{201c}{}\u{201d} of {}", app.filter, app.model.jobs.len()));
    }
    pen.put((0, 0), width, &title, bold);
    if app.model.jobs.is_empty() {
        pen.put((0, 1), width, "none yet: `gristmill submit` sends one", Style::new());
        return;
    }
    let columns = columns(width);
    let fixed: u16 = columns.iter().map(|(_, _, wide)| wide + 1).sum();
    let name_width = width.saturating_sub(fixed);
    let wide = |shown: &Shown| if shown.0 == Column::Name { name_width } else { shown.2 };
    let mut left = 0;
    for shown in columns {
        pen.put((left, 1), wide(shown), shown.1, Style::new().add_modifier(Modifier::DIM));
        left += wide(shown) + 1;
    }
    let rows = usize::from(height.saturating_sub(2));
    let chosen = app.chosen().map(|job| job.job);
    let at = jobs.iter().position(|job| Some(job.job) == chosen).unwrap_or(0);
    let first = (at + 1).saturating_sub(rows);
    for (line, job) in (2..).zip(jobs.iter().skip(first).take(rows)) {
        let mut left = 0;
        for shown in columns {
            cell(app, job, shown.0, (left, line, wide(shown)), &mut pen);
            left += wide(shown) + 1;
        }
        if Some(job.job) == chosen {
            pen.paint((0, line), width, Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED));
        }
    }
}

fn cell(app: &App, job: &JobStatus, column: Column, (left, line, width): (u16, u16, u16), pen: &mut Pen<'_>) {
    let mut put = |text: &str, style: Style| pen.put((left, line), width, text, style);
    match column {
        Column::Job => put(&job.job.to_string(), style_of(app, colour(job.job.0, false))),
        Column::Name => put(&job.name, Style::new()),
        Column::State => put(job.state.word(), state_style(app, job.state)),
        Column::Maps => bar(app, job, job.maps, (left, line, width), pen),
        Column::Reduces => bar(app, job, job.reduces, (left, line, width), pen),
        Column::Tasks => {
            let sum = |of: fn(TaskCounts) -> u32| of(job.maps).saturating_add(of(job.reduces));
            let (total, running, done) =
                (sum(|counts| counts.total), sum(|counts| counts.running), sum(|counts| counts.done));
            bar(app, job, TaskCounts { total, running, done }, (left, line, width), pen);
        }
        Column::Shuffle => {
            let share = 100 * job.totals.shuffle_segments.min(job.segments_total);
            let words = share.checked_div(job.segments_total).map(|percent| format!("{percent} %"));
            put(&words.unwrap_or_default(), Style::new());
        }
        Column::Flow => put(&short(app.flow_ns(job)), Style::new()),
        Column::Left => {
            let left = app.left_ns(job).map(|left| format!("~{}", short(left)));
            put(&left.unwrap_or_default(), Style::new());
        }
        Column::Deadline => put(&deadline(app, job).unwrap_or_default(), Style::new()),
    }
}

/// How many tasks are done, as a bar with the numbers in it; what runs is a lighter piece of it.
fn bar(
    app: &App,
    job: &JobStatus,
    counts: TaskCounts,
    (left, line, width): (u16, u16, u16),
    pen: &mut Pen<'_>,
) {
    if counts.total == 0 {
        return;
    }
    let part = |count: u32| {
        let cells = u64::from(width) * u64::from(count.min(counts.total)) / u64::from(counts.total);
        cells as u16
    };
    let done = part(counts.done);
    let begun = part(counts.done.saturating_add(counts.running));
    let words = format!("{}/{}", counts.done, counts.total);
    pen.put((left, line), width, &format!("{words:<0$}", usize::from(width)), Style::new());
    match app.has_colours {
        true => {
            let ground = |is_reduce| Style::new().bg(colour(job.job.0, is_reduce)).fg(Color::Indexed(16));
            pen.paint((left, line), begun, ground(true));
            pen.paint((left, line), done, ground(false));
        }
        false => pen.paint((left, line), done, Style::new().add_modifier(Modifier::REVERSED)),
    }
}

fn state_style(app: &App, state: JobState) -> Style {
    match state {
        JobState::Succeeded => style_of(app, Color::Green),
        JobState::Failed => style_of(app, Color::Red),
        JobState::Waiting | JobState::Cancelled => style_of(app, Color::Yellow),
        JobState::Running | JobState::Publishing => Style::new(),
    }
}
