//! `top`: a running cluster in a terminal, as it moves.
//!
//! It reads the feed of the live page. Here are the terminal, the network and the time; what is shown is in `model`, what is
//! chosen in `app`, how it looks in `draw`. It changes nothing but what its user says: a job may be cancelled.

mod app;
mod draw;
mod jobs;
mod lanes;
mod model;
mod screen;
mod strip;
#[cfg(test)]
mod tests;

use self::app::{App, Order};
use self::screen::Screen;
use crate::flags::MasterFlags;
use crate::interruption::Listener;
use crate::settings::Settings;
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::api::FeedLine;
use gristmill_runtime::client::{AsyncClient, ClientError};
use gristmill_runtime::exit;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::http::HttpError;
use gristmill_worker::{clean, fault};
use ratatui::crossterm::event::{self, Event, KeyEvent};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::SignalKind;
use tokio::sync::mpsc;

/// A master that has said nothing for so long is lost: it says something four times a second.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// How long a lost master is looked for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two tries to reach it.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Pause between two pictures; a key draws one at once.
const PICTURE_PAUSE: Duration = Duration::from_millis(200);
/// How long the terminal is asked for a key before it is looked whether anybody wants one.
const KEY_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two questions why the chosen job waits.
const WHY_PAUSE: Duration = Duration::from_secs(2);
/// The master's clock goes on so long without word of it.
const AHEAD_MAX: Duration = Duration::from_secs(2);
/// Things that wait to be looked at.
const HEARD_MAX: usize = 64;

/// Show the cluster in a terminal as it moves: workers, jobs, slots
///
/// Keys: q or Ctrl-C leaves; up and down choose a job; c cancels it, after a question; s sorts, r reverses, / filters by name,
/// number, state or pool; [ and ] scroll the slots, + and - change their span, p stops them.
#[derive(Args)]
pub struct TopCommand {
    #[command(flatten)]
    master: MasterFlags,
}

/// What comes from the other tasks and threads.
enum Heard {
    /// A line, and whether it is the first of its feed, which tells all from the beginning.
    Line(Box<FeedLine>, bool),
    Lost(ClientError),
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// There is no terminal any more.
    Gone,
    Why(JobId, Vec<String>),
    Said(String),
}

/// `gristmill top`.
pub fn top(settings: &Settings, flags: &TopCommand) -> anyhow::Result<u8> {
    if !std::io::stdout().is_terminal() {
        return Err(usage(
            "`top` draws on a terminal, and standard output is none; `gristmill status` and `gristmill jobs` print \
             how things stand once, with --json for programs"
                .to_owned(),
        ));
    }
    if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        return Err(usage(
            "`top` draws on a terminal, and TERM says that this one cannot be drawn on; `gristmill status` and \
             `gristmill jobs` print how things stand once"
                .to_owned(),
        ));
    }
    let line = flags.master.join_line(settings)?;
    let runtime = gristmill_worker::threads::runtime()?;
    let client = Arc::new(AsyncClient::with_silence(&line, fault::span("top.silence", SILENCE_MAX)));
    let result = runtime.block_on(watch(&client));
    // Whoever waits for an answer is not waited for.
    runtime.shutdown_background();
    result
}

async fn watch(client: &Arc<AsyncClient>) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let (tell, mut heard) = mpsc::channel(HEARD_MAX);
    tokio::spawn(follow(client.clone(), tell.clone()));
    let has_colours = std::env::var_os("NO_COLOR").is_none();
    let mut app = App::new(client.token_name(), has_colours);
    let mut clock = Clock::default();
    let first = tokio::select! {
        first = heard.recv() => first,
        () = signals.next() => return Ok(exit::INTERRUPTED),
    };
    match first {
        Some(Heard::Line(line, _)) => clock.take(&mut app, *line, true),
        Some(Heard::Lost(error)) => return Err(error.into()),
        _ => return Ok(exit::OK),
    }
    let mut screen = Screen::take()?;
    read_keys(tell.clone())?;
    let mut pictures = tokio::time::interval(PICTURE_PAUSE);
    pictures.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut asked: Option<(JobId, Instant)> = None;
    let mut lost_since = None;
    loop {
        app.now_ns = clock.now_ns(&app);
        let chosen = app.chosen().map(|job| job.job);
        if let Some(job) = chosen.filter(|job| is_due(asked, *job)) {
            asked = Some((job, Instant::now()));
            ask_why(client, job, tell.clone());
        }
        fault::place("top.draw");
        screen.0.draw(|frame| draw::draw(&app, frame))?;
        let event = tokio::select! {
            event = heard.recv() => event,
            _ = pictures.tick() => continue,
            () = signals.next() => return Ok(exit::INTERRUPTED),
        };
        match event {
            Some(Heard::Line(line, is_first)) => {
                (app.lost, lost_since) = (None, None);
                clock.take(&mut app, *line, is_first);
            }
            Some(Heard::Lost(error)) => {
                let since = *lost_since.get_or_insert_with(Instant::now);
                if is_final(&error) || fault::span("top.patience", PATIENCE) <= since.elapsed() {
                    return Err(error.into());
                }
                let words = one_line(&gristmill_runtime::chain(&error));
                app.lost = Some(format!("no word of the master, trying again: {words}"));
            }
            Some(Heard::Key(key)) => match app.press(key) {
                Some(Order::Quit) => return Ok(exit::OK),
                Some(Order::Cancel(job)) => cancel(client, job, tell.clone()),
                None => {}
            },
            Some(Heard::Why(job, sentences)) => app.why = Some((job, sentences)),
            Some(Heard::Said(words)) => app.said = Some(words),
            Some(Heard::Resized) => {}
            Some(Heard::Gone) | None => return Ok(exit::INTERRUPTED),
        }
    }
}

/// The master's clock, which goes on between two lines.
#[derive(Default)]
struct Clock {
    heard: Option<Instant>,
}

impl Clock {
    fn take(&mut self, app: &mut App, line: FeedLine, is_first: bool) {
        if is_first {
            app.model = model::Model::default();
            // It may be another master, which counts its time anew.
            app.paused_ns = None;
        }
        app.model.take(line);
        self.heard = Some(Instant::now());
    }

    fn now_ns(&self, app: &App) -> u64 {
        let ahead = self.heard.map_or(Duration::ZERO, |heard| heard.elapsed().min(AHEAD_MAX));
        app.model.master.as_ref().map_or(0, |master| master.now_ns) + ahead.as_nanos() as u64
    }
}

/// What ends a process from without.
struct Signals([Listener; 3]);

impl Signals {
    fn listen() -> std::io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(Listener::new);
        Ok(Self([interrupt?, terminate?, hangup?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// Tells each line of the feed, and looks for the master again and again when it is lost.
async fn follow(client: Arc<AsyncClient>, tell: mpsc::Sender<Heard>) {
    loop {
        let lost = match client.feed().await {
            Ok(mut feed) => {
                let mut is_first = true;
                loop {
                    match feed.next().await {
                        Ok(line) => {
                            if tell.send(Heard::Line(Box::new(line), is_first)).await.is_err() {
                                return;
                            }
                        }
                        Err(lost) => break lost,
                    }
                    is_first = false;
                }
            }
            Err(lost) => lost,
        };
        if tell.send(Heard::Lost(lost)).await.is_err() {
            return;
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// A message in the one line that it has on the screen.
fn one_line(text: &str) -> String {
    clean::line(text, clean::MESSAGE_BYTES_MAX)
}

/// Whether it is no use to try again: the master is there, and does not let this key in.
fn is_final(error: &ClientError) -> bool {
    matches!(error, ClientError::Master { source, .. }
        if matches!(**source, HttpError::Unauthorized { .. } | HttpError::Forbidden { .. } | HttpError::PinMismatch { .. }))
}

/// Reads keys on a thread of its own, as a terminal can only be waited for by blocking.
fn read_keys(tell: mpsc::Sender<Heard>) -> std::io::Result<()> {
    let read = move || {
        while !tell.is_closed() {
            let heard = match event::poll(KEY_PAUSE) {
                Ok(false) => continue,
                Ok(true) => match event::read() {
                    Ok(Event::Key(key)) => Heard::Key(key),
                    Ok(Event::Resize(..)) => Heard::Resized,
                    Ok(_) => continue,
                    Err(_) => Heard::Gone,
                },
                Err(_) => Heard::Gone,
            };
            let gone = matches!(heard, Heard::Gone);
            if tell.blocking_send(heard).is_err() || gone {
                return;
            }
        }
    };
    std::thread::Builder::new().name("keys".to_owned()).spawn(read).map(drop)
}

/// Whether it is time to ask why a job waits.
fn is_due(asked: Option<(JobId, Instant)>, job: JobId) -> bool {
    asked.is_none_or(|(before, at)| before != job || WHY_PAUSE <= at.elapsed())
}

fn ask_why(client: &Arc<AsyncClient>, job: JobId, tell: mpsc::Sender<Heard>) {
    let client = client.clone();
    tokio::spawn(async move {
        // A job that the master does not tell of has nothing beside it.
        if let Ok(why) = client.explain(job, None).await {
            let sentences = why.sentences.iter().map(|sentence| one_line(sentence)).collect();
            let _ = tell.send(Heard::Why(job, sentences)).await;
        }
    });
}

fn cancel(client: &Arc<AsyncClient>, job: JobId, tell: mpsc::Sender<Heard>) {
    let client = client.clone();
    tokio::spawn(async move {
        let words = match client.cancel(job).await {
            Ok(()) => format!("{job} is being cancelled"),
            Err(error) => {
                let role = if is_final(&error) { "; cancelling needs a key of the role submit" } else { "" };
                format!("{job} was not cancelled: {}{role}", one_line(&gristmill_runtime::chain(&error)))
            }
        };
        let _ = tell.send(Heard::Said(words)).await;
    });
}
