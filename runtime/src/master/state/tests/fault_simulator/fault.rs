//! The kinds of faults, and how one is drawn.

use super::scenario::{Mode, Theme};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::protocol::FailureClass;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::fmt;

/// A fault that is injected once, into the process that is at a place then.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PlannedFault {
    pub at: Time,
    /// The worker, by its place in the scenario.
    pub place: usize,
    pub fault: Fault,
    /// Duration of a fault that lasts: a stop, a cut, slowness or a full disk.
    pub lasts: Span,
}

impl fmt::Display for PlannedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts) = (self.at.seconds(), self.lasts.seconds());
        write!(f, "{at:9.3} s  place {}: {:?}, {lasts:.3} s", self.place, self.fault)
    }
}

/// Kinds of faults.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Fault {
    /// SIGKILL. Another process takes the place after that time.
    Kill,
    /// User code ends the process of the next attempt.
    Crash,
    /// SIGSTOP, and SIGCONT after that time.
    Stop,
    /// SIGSTOP between the permit of the next commit and its report.
    StopInCommit,
    /// No bytes between two workers, in one direction or both.
    CutPair { other: usize, both: bool },
    /// No bytes from the master to the worker.
    Deafen,
    /// No bytes from the worker to the master.
    Mute,
    /// No bytes between the worker and any other process.
    Isolate,
    /// The control connection breaks, and frames in flight are lost.
    Disconnect,
    /// The first N map outputs vanish.
    LoseOutputs(usize),
    /// N segments are damaged in transfer.
    DamageTransfers(u32),
    /// N responses to fetches break off.
    BreakTransfers(u32),
    /// The next attempt fails with this class.
    Fail(FailureClass),
    /// The next attempt hangs.
    Hang,
    /// Memory and disk are full.
    Fill,
    /// Everything takes N times as long.
    Slow(u32),
    /// N frames arrive twice, the second time late.
    Repeat(u32),
    /// A job is cancelled.
    Cancel(usize),
    /// Another policy takes over.
    DecideBy(usize),
    /// Another worker joins.
    Join,
    /// The master is killed, and another takes its place. The file it was writing is cut off at any byte, the frames it
    /// was sending are lost from any point on, and frames in flight to it are lost.
    KillMaster,
}

impl Fault {
    /// Name in the counts of injected faults.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::Crash => "crash",
            Fault::Stop => "stop",
            Fault::StopInCommit => "stop in commit",
            Fault::CutPair { .. } => "cut pair",
            Fault::Deafen => "deafen",
            Fault::Mute => "mute",
            Fault::Isolate => "isolate",
            Fault::Disconnect => "disconnect",
            Fault::LoseOutputs(_) => "lose outputs",
            Fault::DamageTransfers(_) => "damage transfers",
            Fault::BreakTransfers(_) => "break transfers",
            Fault::Fail(_) => "fail",
            Fault::Hang => "hang",
            Fault::Fill => "fill",
            Fault::Slow(_) => "slow",
            Fault::Repeat(_) => "repeat",
            Fault::Cancel(_) => "cancel",
            Fault::DecideBy(_) => "decide by",
            Fault::Join => "join",
            Fault::KillMaster => "kill master",
        }
    }

    fn draw(rng: &mut ChaCha8Rng, (places, jobs): (usize, usize)) -> Self {
        match rng.random_range(0..100) {
            0..12 => Fault::Kill,
            12..15 => Fault::Crash,
            15..23 => Fault::Stop,
            23..31 => Fault::StopInCommit,
            31..39 => {
                Fault::CutPair { other: rng.random_range(0..places), both: rng.random_range(0..2) == 0 }
            }
            39..43 => Fault::Deafen,
            43..50 => Fault::Mute,
            50..53 => Fault::Isolate,
            53..58 => Fault::Disconnect,
            58..65 => Fault::LoseOutputs(rng.random_range(1..5)),
            65..69 => Fault::DamageTransfers(rng.random_range(1..6)),
            69..73 => Fault::BreakTransfers(rng.random_range(1..6)),
            73..79 => Fault::Fail(class(rng)),
            79..81 => Fault::Hang,
            81..85 => Fault::Fill,
            85..89 => Fault::Slow(rng.random_range(2..20)),
            89..93 => Fault::Repeat(rng.random_range(1..10)),
            93..94 => Fault::Cancel(rng.random_range(0..jobs)),
            94..97 => Fault::DecideBy(rng.random_range(0..1000)),
            _ => Fault::Join,
        }
    }
}

fn class(rng: &mut ChaCha8Rng) -> FailureClass {
    match rng.random_range(0..100) {
        0..30 => FailureClass::User,
        30..55 => FailureClass::Worker,
        55..70 => FailureClass::Corrupt,
        70..85 => FailureClass::Unreachable,
        _ => FailureClass::Engine,
    }
}

/// Draws the faults of a run, by time. `arrivals` are those of its jobs.
pub(super) fn draw(
    rng: &mut ChaCha8Rng,
    (mode, theme): (Mode, Theme),
    until: Time,
    (places, arrivals): (usize, &[Time]),
) -> Vec<PlannedFault> {
    let count = match mode {
        Mode::Liveness => rng.random_range(0..14),
        Mode::Safety => rng.random_range(5..40),
    };
    let mut faults = Vec::new();
    for _ in 0..count {
        let fault = PlannedFault {
            at: Time(rng.random_range(0..until.0)),
            place: rng.random_range(0..places),
            fault: Fault::draw(rng, (places, arrivals.len())),
            lasts: span(rng),
        };
        match theme {
            Theme::LateNews if rng.random_range(0..4) != 0 => {
                faults.extend(news_of_the_dead(rng, places, arrivals));
            }
            _ => faults.push(fault),
        }
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// Draws two faults: when a job starts, the frames of one worker are lost for too short a time to lose the worker, and
/// meanwhile another worker is killed. The segments that the first has fetched from it become known when its maps have
/// run again elsewhere.
fn news_of_the_dead(rng: &mut ChaCha8Rng, places: usize, arrivals: &[Time]) -> [PlannedFault; 2] {
    let arrival = arrivals[rng.random_range(0..arrivals.len())];
    let at = Time(arrival.0.saturating_sub(rng.random_range(0..300_000_000)));
    let lasts = Span::milliseconds(rng.random_range(1_000..4_500));
    let place = rng.random_range(0..places);
    let other = (place + rng.random_range(1..places)) % places;
    let killed = at + Span(rng.random_range(0..lasts.0 * 3 / 4));
    [
        PlannedFault { at, place, fault: Fault::Mute, lasts },
        PlannedFault { at: killed, place: other, fault: Fault::Kill, lasts: span(rng) },
    ]
}

/// Draws the deaths of the master, if there are any.
pub(super) fn master_deaths(rng: &mut ChaCha8Rng, until: Time) -> Vec<PlannedFault> {
    let death = |rng: &mut ChaCha8Rng| PlannedFault {
        at: Time(rng.random_range(0..until.0)),
        place: 0,
        fault: Fault::KillMaster,
        lasts: Span::default(),
    };
    (0..rng.random_range(1..6)).map(|_| death(rng)).collect()
}

/// Draws a duration. Half of them are too short to lose a worker.
fn span(rng: &mut ChaCha8Rng) -> Span {
    match rng.random_range(0..4) {
        0 => Span::milliseconds(rng.random_range(10..1_000)),
        1 => Span::milliseconds(rng.random_range(1_000..4_500)),
        2 => Span::milliseconds(rng.random_range(4_500..9_000)),
        _ => Span::milliseconds(rng.random_range(9_000..40_000)),
    }
}
