//! Slots as a strip that moves: a line for each slot, a character for some time, in the colour of the job that ran.
//!
//! Only lines that are seen are drawn, so that thousands of slots cost no more than a screenful.

use super::app::App;
use super::draw::{Pen, colour, short, style_of};
use super::lanes::{Bar, Lane, LaneKind};
use gristmill_runtime::api::FeedEnd;
use gristmill_scheduler::ids::WorkerId;
use ratatui::style::{Color, Modifier, Style};

/// Columns of the name of a slot.
const NAME_WIDTH: u16 = 12;

/// A title, and as many slots as fit.
pub(super) fn draw(app: &App, mut pen: Pen<'_>) {
    let (width, height) = (pen.area.width, pen.area.height);
    let rows = usize::from(height.saturating_sub(1));
    let cells = width.saturating_sub(NAME_WIDTH);
    if rows == 0 || cells == 0 {
        return;
    }
    let all: usize = app.model.workers.values().map(|worker| worker.lanes.len()).sum();
    let first = app.first_lane.min(all.saturating_sub(rows));
    let last = (first + rows).min(all);
    let title = format!(
        "Slots {} to {last} of {all}, last {}   \u{2588} map \u{2593} reduce x failed \u{2591} queued or lost \u{2592} suspended",
        (first + 1).min(all),
        short(app.span_ns())
    );
    pen.put((0, 0), width, &title, Style::new().add_modifier(Modifier::BOLD));
    let until_ns = app.paused_ns.unwrap_or(app.now_ns);
    let window =
        Window { from_ns: until_ns.saturating_sub(app.span_ns()), until_ns, cells: usize::from(cells) };
    let mut skipped = 0;
    let mut line = 1;
    for (id, worker) in &app.model.workers {
        if skipped + worker.lanes.len() <= first {
            skipped += worker.lanes.len();
            continue;
        }
        for lane in worker.lanes.iter().skip(first.saturating_sub(skipped)) {
            if height <= line {
                return;
            }
            let name = match worker.live {
                Some(_) => Style::new(),
                None => style_of(app, Color::Red),
            };
            pen.put((0, line), NAME_WIDTH - 1, &name_of(*id, lane.kind, worker.live.is_none()), name);
            draw_lane(app, lane, &window, line, &mut pen);
            line += 1;
        }
        skipped = skipped.max(first);
    }
}

fn name_of(worker: WorkerId, kind: LaneKind, is_gone: bool) -> String {
    let gone = if is_gone { "\u{2020}" } else { "" };
    let lane = match kind {
        LaneKind::Slot(slot) => format!("slot {slot}"),
        LaneKind::Map(slot) => format!("map {slot}"),
        LaneKind::Reduce(slot) => format!("red {slot}"),
        LaneKind::Queued => "queued".to_owned(),
        LaneKind::Suspended => "suspend".to_owned(),
    };
    format!("{}{gone} {lane}", worker.0)
}

/// The time that is shown.
struct Window {
    from_ns: u64,
    until_ns: u64,
    cells: usize,
}

impl Window {
    /// The cell in which this time lies, with its fraction.
    fn cell(&self, ns: u64) -> f64 {
        let span = (self.until_ns - self.from_ns).max(1) as f64;
        (ns as f64 - self.from_ns as f64) / span * self.cells as f64
    }
}

/// What is in one cell: the bar that takes most of it, and how much that is.
type Cell<'a> = Option<(f64, &'a Bar)>;

fn draw_lane(app: &App, lane: &Lane, window: &Window, line: u16, pen: &mut Pen<'_>) {
    let mut cells: Vec<Cell<'_>> = vec![None; window.cells];
    for bar in &lane.bars {
        let until_ns = bar.until_ns.unwrap_or(window.until_ns).min(window.until_ns);
        if until_ns < window.from_ns || window.until_ns < bar.from_ns {
            continue;
        }
        let (from, until) = (window.cell(bar.from_ns.max(window.from_ns)), window.cell(until_ns));
        let last = (until.ceil() as usize).clamp(from as usize + 1, window.cells.max(from as usize + 1));
        for (at, cell) in cells.iter_mut().enumerate().take(last).skip(from as usize) {
            let share = until.min(at as f64 + 1.0) - from.max(at as f64);
            if cell.is_none_or(|(most, _)| most < share) {
                *cell = Some((share, bar));
            }
        }
    }
    for (at, cell) in cells.iter().enumerate() {
        let place = (NAME_WIDTH + at as u16, line);
        match cell {
            None => pen.put(place, 1, "\u{b7}", Style::new().add_modifier(Modifier::DIM)),
            Some((share, bar)) => {
                // Where one ends and the next begins.
                let joins = 0 < at && cells[at - 1].is_some_and(|(_, before)| !std::ptr::eq(before, *bar));
                let (sign, style) = look(app, lane.kind, bar, *share, joins);
                pen.put(place, 1, &sign, style);
            }
        }
    }
}

fn look(app: &App, kind: LaneKind, bar: &Bar, share: f64, joins: bool) -> (String, Style) {
    let style = style_of(app, colour(bar.job, bar.is_reduce));
    let sign = match (kind, bar.end) {
        (LaneKind::Queued, _) | (_, FeedEnd::Lost | FeedEnd::Returned) => '\u{2591}',
        (LaneKind::Suspended, _) => '\u{2592}',
        (_, FeedEnd::Failed) => return ("x".to_owned(), style_of(app, Color::Red)),
        // Without colours a job is its last digit, or for reduces a letter.
        _ if !app.has_colours => {
            let first = if bar.is_reduce { b'a' } else { b'0' };
            return (char::from(first + (bar.job % 10) as u8).to_string(), style);
        }
        _ if joins || share < 0.5 => '\u{2590}',
        _ if bar.is_reduce => '\u{2593}',
        _ => '\u{2588}',
    };
    (sign.to_string(), style)
}
