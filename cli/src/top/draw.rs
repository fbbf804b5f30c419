//! The whole screen: the cluster, jobs, why the chosen one waits, slots as a strip, what keys there are.
//!
//! Drawn anew from the model each time; any size of terminal will do. Not here: what is chosen (`app`), and which attempt
//! is in which lane (`lanes`).

use super::app::App;
use super::jobs;
use super::strip;
use gristmill_runtime::api::TaskCounts;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::units::Bytes;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// Colours of jobs, those of their maps and those of their reduces, of the 256 that terminals know.
const COLOURS: [(u8, u8); 10] = [
    (179, 136),
    (74, 31),
    (175, 132),
    (114, 71),
    (141, 98),
    (173, 130),
    (80, 37),
    (149, 106),
    (183, 140),
    (110, 67),
];

/// What keys there are.
const KEYS: &str =
    "q quit  \u{2191}\u{2193} job  c cancel  s sort  r reverse  / filter  [ ] slots  + - span  p pause";

/// The colour of a job's maps or reduces.
pub(super) fn colour(job: u32, is_reduce: bool) -> Color {
    let (map, reduce) = COLOURS[job as usize % COLOURS.len()];
    Color::Indexed(if is_reduce { reduce } else { map })
}

/// Where on the screen something is written, line by line.
pub(super) struct Pen<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) area: Rect,
}

impl Pen<'_> {
    /// Writes at a column and line of the area, as much as there is room for up to `width`.
    pub(super) fn put(&mut self, at: (u16, u16), width: u16, text: &str, style: Style) {
        let (x, y) = at;
        if self.area.width <= x || self.area.height <= y {
            return;
        }
        let width = width.min(self.area.width - x);
        self.buffer.set_stringn(self.area.x + x, self.area.y + y, text, usize::from(width), style);
    }

    /// Colours what is written there already.
    pub(super) fn paint(&mut self, at: (u16, u16), width: u16, style: Style) {
        let (x, y) = at;
        let place = Rect { x: self.area.x + x, y: self.area.y + y, width, height: 1 };
        self.buffer.set_style(place.intersection(self.area), style);
    }
}

/// Heights of the parts from above, which make up the screen.
struct Heights {
    cluster: u16,
    jobs: u16,
    why: u16,
    strip: u16,
}

fn heights(height: u16, jobs: usize, troubles: usize) -> Heights {
    let cluster = if 14 <= height { 2 } else { 1 } + u16::from(0 < troubles);
    let why = match height {
        0..12 => 0,
        12..20 => 1,
        _ => 2,
    };
    // The last line has the keys.
    let rest = height.saturating_sub(cluster + why + 1);
    let wanted = u16::try_from(jobs).unwrap_or(u16::MAX).saturating_add(2).max(3);
    let jobs = wanted.min(rest.div_ceil(2));
    Heights { cluster, jobs, why, strip: rest - jobs }
}

/// Draws all of it.
pub(super) fn draw(app: &App, frame: &mut Frame<'_>) {
    let area = frame.area();
    let mut troubles = app.model.troubles();
    troubles.splice(0..0, app.lost.clone());
    let Heights { cluster, jobs, why, strip } = heights(area.height, app.jobs().len(), troubles.len());
    let mut top = area.y;
    let mut part = |height: u16| {
        let part = Rect { y: top, height, ..area }.intersection(area);
        top = top.saturating_add(height);
        part
    };
    let parts = [part(cluster), part(jobs), part(why), part(strip), part(1)];
    let buffer = frame.buffer_mut();
    let mut pens = parts.into_iter();
    let mut next = |draw: &mut dyn FnMut(Pen<'_>)| {
        if let Some(area) = pens.next() {
            draw(Pen { buffer, area });
        }
    };
    next(&mut |pen| draw_cluster(app, &troubles, pen));
    next(&mut |pen| jobs::draw(app, pen));
    next(&mut |pen| draw_why(app, pen));
    next(&mut |pen| strip::draw(app, pen));
    next(&mut |pen| draw_last_line(app, pen));
}

fn draw_cluster(app: &App, troubles: &[String], mut pen: Pen<'_>) {
    let Some(master) = &app.model.master else { return };
    let width = pen.area.width;
    let mut line = 0;
    if 2 + u16::from(!troubles.is_empty()) <= pen.area.height {
        let pause = if app.paused_ns.is_some() { "  (strip paused)" } else { "" };
        let words = format!(
            "gristmill {}  up {}  policy {}  placement {}  estimator {}{pause}",
            master.version,
            short(app.now_ns),
            master.policy,
            master.placement,
            master.estimator
        );
        pen.put((0, 0), width, &words, Style::new().add_modifier(Modifier::DIM));
        line = 1;
    }
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut left = 0;
    for (at, (words, style)) in facts(app, troubles.is_empty()).into_iter().enumerate() {
        let wide = Span::raw(words.as_str()).width() as u16;
        // The first is told whatever the room.
        if 0 < at && width < left + wide {
            break;
        }
        pen.put((left, line), width, &words, if at == 0 { style.patch(bold) } else { style });
        left = left.saturating_add(wide + 2);
    }
    if !troubles.is_empty() {
        pen.put((0, line + 1), width, &troubles.join("; "), style_of(app, Color::Red).patch(bold));
    }
}

/// What is said of the cluster, what matters most first.
fn facts(app: &App, is_well: bool) -> Vec<(String, Style)> {
    let plain = Style::new();
    let (mut workers, mut slots, mut memory, mut budget, mut disk) = (0_u32, 0_u32, 0_u64, 0_u64, u64::MAX);
    for worker in app.model.live() {
        workers += 1;
        slots = slots.saturating_add(worker.slots);
        memory = memory.saturating_add(worker.memory_bytes);
        budget = budget.saturating_add(worker.memory_budget_bytes);
        disk = disk.min(worker.disk_free_bytes);
    }
    if workers == 0 {
        let words = "0 workers: start one with `gristmill worker`".to_owned();
        return vec![(words, style_of(app, Color::Yellow))];
    }
    let live = || app.model.jobs.values().filter(|job| !job.state.ended());
    let running = |kind: fn(&gristmill_runtime::api::JobStatus) -> TaskCounts| -> u32 {
        live().map(|job| kind(job).running).sum()
    };
    let (maps, reduces) = (running(|job| job.maps), running(|job| job.reduces));
    let health = match is_well {
        true => ("healthy".to_owned(), style_of(app, Color::Green)),
        false => ("see below".to_owned(), style_of(app, Color::Red)),
    };
    vec![
        (counted(workers as u64, "worker", "workers"), plain),
        (format!("{} of {slots} slots", maps + reduces), plain),
        health,
        (
            format!(
                "{} {}",
                counted(u64::from(maps), "map", "maps"),
                counted(u64::from(reduces), "reduce", "reduces")
            ),
            plain,
        ),
        (format!("{}/s network", Bytes(app.model.network_rate())), plain),
        (format!("memory {} of {}", Bytes(memory), Bytes(budget)), plain),
        (format!("{} disk free at least", Bytes(disk)), plain),
    ]
}

/// What is chosen: why it waits, and its deadline.
fn draw_why(app: &App, mut pen: Pen<'_>) {
    let Some(job) = app.chosen() else { return };
    let mut sentences = Vec::new();
    if let Some(failure) = &job.failure {
        sentences.push(failure.message.clone());
    }
    sentences.extend(deadline(app, job));
    if let Some((_, why)) = app.why.as_ref().filter(|(id, _)| *id == job.job) {
        sentences.extend(why.iter().cloned());
    }
    let words = format!(
        "{}: {}",
        job.job,
        if sentences.is_empty() { "\u{2026}".to_owned() } else { sentences.join("; ") }
    );
    let width = usize::from(pen.area.width.max(1));
    // By characters: a wide one is cut by the edge.
    let characters: Vec<char> = words.chars().collect();
    for (line, piece) in characters.chunks(width).take(usize::from(pen.area.height)).enumerate() {
        let piece: String = piece.iter().collect();
        pen.put((0, line as u16), pen.area.width, &piece, style_of(app, Color::Cyan));
    }
}

/// How a job stands to its deadline, in words.
pub(super) fn deadline(app: &App, job: &gristmill_runtime::api::JobStatus) -> Option<String> {
    let deadline_ns = job.deadline_ns?;
    let at_ns = job.ended_ns.unwrap_or(app.now_ns);
    Some(if deadline_ns < at_ns {
        format!("deadline missed by {}", short(at_ns - deadline_ns))
    } else {
        format!("{} to its deadline", short(deadline_ns - at_ns))
    })
}

fn draw_last_line(app: &App, mut pen: Pen<'_>) {
    let width = pen.area.width;
    let asks = style_of(app, Color::Yellow).add_modifier(Modifier::BOLD);
    if let Some(job) = app.question {
        let name = app.model.jobs.get(&job).map_or("", |job| job.name.as_str());
        return pen.put(
            (0, 0),
            width,
            &format!("Cancel {job} {name}? y cancels it, any other key does not"),
            asks,
        );
    }
    if let Some(said) = &app.said {
        return pen.put((0, 0), width, said, asks);
    }
    if app.types {
        return pen.put(
            (0, 0),
            width,
            &format!("filter: {}\u{2588}  Enter keeps it, Esc clears it", app.filter),
            asks,
        );
    }
    pen.put((0, 0), width, KEYS, Style::new().add_modifier(Modifier::DIM));
}

/// This colour, where there are colours.
pub(super) fn style_of(app: &App, colour: Color) -> Style {
    if app.has_colours { Style::new().fg(colour) } else { Style::new() }
}

/// A span of time in few characters.
pub(super) fn short(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 0.9995 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 99.95 => format!("{seconds:.1} s"),
        600..6_000 => format!("{} min", whole / 60),
        0..600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}
