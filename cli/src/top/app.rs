//! What somebody has chosen to see, and what each key does: no terminal and no network, so that tests can press keys.

use super::model::{Model, NS};
use gristmill_runtime::api::{JobState, JobStatus};
use gristmill_scheduler::ids::JobId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Spans of the strip, seconds.
const SPANS: [u64; 4] = [15, 60, 300, 600];
/// Longest filter, characters.
const FILTER_MAX: usize = 60;

/// By what jobs are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    /// Those that run, then those that wait, then those that have ended.
    State,
    /// The newest first.
    Number,
    /// The longest on their way first.
    Flow,
    /// Those with the least left first.
    Left,
    Name,
}

impl Sort {
    const ALL: [Sort; 5] = [Sort::State, Sort::Number, Sort::Flow, Sort::Left, Sort::Name];

    pub(super) fn word(self) -> &'static str {
        match self {
            Sort::State => "state",
            Sort::Number => "number",
            Sort::Flow => "flow time",
            Sort::Left => "time left",
            Sort::Name => "name",
        }
    }
}

/// What a key asks of whoever owns terminal and network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Quit,
    Cancel(JobId),
}

/// What is shown, and how.
pub(super) struct App {
    pub(super) model: Model,
    pub(super) sort: Sort,
    pub(super) reversed: bool,
    pub(super) filter: String,
    /// Keys go into the filter.
    pub(super) types: bool,
    pub(super) selected: Option<JobId>,
    /// The first row of the strip that is shown.
    pub(super) first_lane: usize,
    /// Of [`SPANS`].
    span: usize,
    /// The master's clock where the strip stands still.
    pub(super) paused_ns: Option<u64>,
    /// The job about which is asked whether it is to be cancelled.
    pub(super) question: Option<JobId>,
    /// Said until the next key.
    pub(super) said: Option<String>,
    /// Why a job waits, in sentences.
    pub(super) why: Option<(JobId, Vec<String>)>,
    /// Why the master is not heard of.
    pub(super) lost: Option<String>,
    /// The master's clock now.
    pub(super) now_ns: u64,
    /// Why this key may not cancel, if it may not.
    pub(super) only_looks: Option<String>,
    pub(super) has_colours: bool,
}

impl App {
    /// With a key of this name, such as `view-projector@0`.
    pub(super) fn new(token_name: &str, has_colours: bool) -> Self {
        let role = token_name.split(['-', '@']).next().unwrap_or_default();
        let only_looks = (role == "view").then(|| {
            format!("the key {token_name} may only look: cancelling needs one of the role submit (`gristmill token new submit`)")
        });
        Self {
            model: Model::default(),
            sort: Sort::State,
            reversed: false,
            filter: String::new(),
            types: false,
            selected: None,
            first_lane: 0,
            span: 1,
            paused_ns: None,
            question: None,
            said: None,
            why: None,
            lost: None,
            now_ns: 0,
            only_looks,
            has_colours,
        }
    }

    /// Span of the strip, nanoseconds.
    pub(super) fn span_ns(&self) -> u64 {
        SPANS[self.span] * NS
    }

    /// The jobs that are shown, in order.
    pub(super) fn jobs(&self) -> Vec<&JobStatus> {
        let wanted = self.filter.to_lowercase();
        let matches = |job: &&JobStatus| {
            let pool = job.pool.as_deref().unwrap_or_default();
            let words = format!("{} {} {} {pool}", job.job, job.name, job.state.word());
            words.to_lowercase().contains(&wanted)
        };
        let mut jobs: Vec<&JobStatus> = self.model.jobs.values().filter(matches).collect();
        let newest = |job: &JobStatus| std::cmp::Reverse(job.job);
        match self.sort {
            Sort::State => jobs.sort_by_key(|job| (rank(job), newest(job))),
            Sort::Number => jobs.sort_by_key(|job| newest(job)),
            Sort::Flow => jobs.sort_by_key(|job| (std::cmp::Reverse(self.flow_ns(job)), job.job)),
            Sort::Left => jobs.sort_by_key(|job| (self.left_ns(job).unwrap_or(u64::MAX), job.job)),
            Sort::Name => jobs.sort_by(|a, b| (&a.name, a.job).cmp(&(&b.name, b.job))),
        }
        if self.reversed {
            jobs.reverse();
        }
        jobs
    }

    /// From arrival to end, or to now.
    pub(super) fn flow_ns(&self, job: &JobStatus) -> u64 {
        job.ended_ns.unwrap_or(self.now_ns).saturating_sub(job.arrived_ns)
    }

    /// How long a job will take from now on if it goes on as it did since it began; `None` if nothing can be said yet.
    pub(super) fn left_ns(&self, job: &JobStatus) -> Option<u64> {
        let (work, started_ns) = (job.work?, job.started_ns?);
        if job.state.ended() {
            return None;
        }
        // Slot-seconds of maps and reduces; the network works beside them.
        let [whole, left] = [work.whole, work.left].map(|[map, _, reduce]| map + reduce);
        let elapsed_ns = self.now_ns.saturating_sub(started_ns);
        let done = whole - left;
        let known = NS <= elapsed_ns && whole.is_finite() && 0.02 * whole < done;
        known.then(|| (elapsed_ns as f64 * left.max(0.0) / done) as u64)
    }

    /// The job that is chosen, or else the first.
    pub(super) fn chosen(&self) -> Option<&JobStatus> {
        let jobs = self.jobs();
        jobs.iter().find(|job| Some(job.job) == self.selected).or(jobs.first()).copied()
    }

    /// Does what a key means here; what it means beyond is answered.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Order> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.said = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return matches!(key.code, KeyCode::Char('c' | 'C')).then_some(Order::Quit);
        }
        if let Some(job) = self.question.take() {
            let yes = matches!(key.code, KeyCode::Char('y' | 'Y'));
            self.said = (!yes).then(|| format!("{job} goes on"));
            return yes.then_some(Order::Cancel(job));
        }
        if self.types {
            self.type_filter(key.code);
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Order::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Home => self.choose(isize::MIN),
            KeyCode::End => self.choose(isize::MAX),
            KeyCode::PageDown | KeyCode::Char(']') => self.first_lane = self.first_lane.saturating_add(5),
            KeyCode::PageUp | KeyCode::Char('[') => self.first_lane = self.first_lane.saturating_sub(5),
            KeyCode::Char('s') => {
                let at = Sort::ALL.iter().position(|sort| *sort == self.sort).unwrap_or(0);
                self.sort = Sort::ALL[(at + 1) % Sort::ALL.len()];
            }
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char('/') => self.types = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('+') => self.span = self.span.saturating_sub(1),
            KeyCode::Char('-') => self.span = (self.span + 1).min(SPANS.len() - 1),
            KeyCode::Char('p' | ' ') => {
                self.paused_ns = if self.paused_ns.is_some() { None } else { Some(self.now_ns) };
            }
            KeyCode::Char('c') => self.ask_to_cancel(),
            _ => {}
        }
        None
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.types = false,
            KeyCode::Esc => {
                self.types = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(character) if self.filter.chars().count() < FILTER_MAX => {
                self.filter.push(character);
            }
            _ => {}
        }
    }

    fn choose(&mut self, by: isize) {
        let jobs = self.jobs();
        let Some(last) = jobs.len().checked_sub(1) else { return };
        let at = jobs.iter().position(|job| Some(job.job) == self.selected).unwrap_or(0);
        let id = jobs[at.saturating_add_signed(by).min(last)].job;
        self.selected = Some(id);
    }

    fn ask_to_cancel(&mut self) {
        let Some((id, state)) = self.chosen().map(|job| (job.job, job.state)) else {
            self.said = Some("there is no job to cancel".to_owned());
            return;
        };
        self.selected = Some(id);
        if state.ended() {
            self.said = Some(format!("{id} has {} already", ended_words(state)));
        } else if let Some(words) = &self.only_looks {
            self.said = Some(words.clone());
        } else {
            self.question = Some(id);
        }
    }
}

fn ended_words(state: JobState) -> &'static str {
    if state == JobState::Cancelled { "been cancelled" } else { state.word() }
}

fn rank(job: &JobStatus) -> u8 {
    match job.state {
        JobState::Running | JobState::Publishing => 0,
        JobState::Waiting => 1,
        JobState::Succeeded | JobState::Failed | JobState::Cancelled => 2,
    }
}
