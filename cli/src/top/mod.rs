//! `top`: a live view of a running cluster in a terminal.
//!
//! It reads the feed of the live page. This file has the terminal, the network and the time; `app` has the
//! state, and `draw` the layout. It changes nothing unless its user cancels a job.

mod app;
mod draw;
#[cfg(test)]
mod tests;

use self::app::{App, Order};
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
use gristmill_worker::{fault, sanitize};
use ratatui::crossterm::event::{self, Event, KeyEvent};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::SignalKind;
use tokio::sync::mpsc;

/// A master that is silent this long is lost: it sends a line four times a second.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Time for which a lost master is retried.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// Pause between two retries.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Pause between two pictures; a key draws one at once.
const PICTURE_PAUSE: Duration = Duration::from_millis(200);
/// Time that the thread of keys waits for one before it checks for the end.
const KEY_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two requests why the chosen job waits.
const WHY_PAUSE: Duration = Duration::from_secs(2);
/// Longest time for which the master's clock advances without a line of it.
const AHEAD_MAX: Duration = Duration::from_secs(2);
/// Most events that wait to be handled.
const EVENTS_MAX: usize = 64;

/// Show the cluster in a terminal as it changes: workers, jobs, slots
///
/// Keys: q or Ctrl-C quits; up and down choose a job; c cancels it, after a question.
#[derive(Args)]
pub struct TopCommand {
    #[command(flatten)]
    master: MasterFlags,
}

/// Message of the other tasks and threads.
enum Message {
    /// A line, and true if it is the first of its feed, which contains the whole state.
    Line(Box<FeedLine>, bool),
    Lost(ClientError),
    Key(KeyEvent),
    /// The size of the terminal has changed.
    Resized,
    /// The terminal is closed.
    Gone,
    Why(JobId, Vec<String>),
    Note(String),
}

/// `gristmill cluster top`.
pub fn top(settings: &Settings, flags: &TopCommand) -> anyhow::Result<u8> {
    if !std::io::stdout().is_terminal() {
        return Err(usage(
            "`top` draws on a terminal, and standard output is not one; `gristmill cluster status` and `gristmill job list` print the \
             state once, with --json for programs"
                .to_owned(),
        ));
    }
    if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        return Err(usage(
            "`top` draws on a terminal, and by TERM this one cannot be drawn on; `gristmill cluster status` and `gristmill job list` \
             print the state once"
                .to_owned(),
        ));
    }
    let line = flags.master.join_line(settings)?;
    let runtime = gristmill_worker::threads::runtime()?;
    let client = Arc::new(AsyncClient::with_silence(&line, fault::span("top.silence", SILENCE_MAX)));
    let result = runtime.block_on(watch(&client));
    // Open requests are not waited for.
    runtime.shutdown_background();
    result
}

/// The terminal, which is restored at an end and an error. The hook of `try_init` restores it at a panic; a second time would
/// move the cursor.
struct Screen;

impl Drop for Screen {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            ratatui::restore();
        }
    }
}

async fn watch(client: &Arc<AsyncClient>) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let (sender, mut messages) = mpsc::channel(EVENTS_MAX);
    tokio::spawn(follow(client.clone(), sender.clone()));
    let mut app = App::new(client.token_name(), std::env::var_os("NO_COLOR").is_none());
    let first = tokio::select! {
        first = messages.recv() => first,
        () = signals.next() => return Ok(exit::INTERRUPTED),
    };
    let mut line_at = Instant::now();
    match first {
        Some(Message::Line(line, _)) => app.take(*line, true),
        Some(Message::Lost(error)) => return Err(error.into()),
        _ => return Ok(exit::OK),
    }
    let _screen = Screen;
    let mut terminal = ratatui::try_init()?;
    read_keys(sender.clone())?;
    let mut pictures = tokio::time::interval(PICTURE_PAUSE);
    pictures.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut asked: Option<(JobId, Instant)> = None;
    let mut lost_since = None;
    loop {
        app.now_ns = app.master_ns() + line_at.elapsed().min(AHEAD_MAX).as_nanos() as u64;
        let is_due = |job: JobId| asked.is_none_or(|(last, at)| last != job || at.elapsed() >= WHY_PAUSE);
        if let Some(job) = app.chosen().map(|job| job.job).filter(|job| is_due(*job)) {
            asked = Some((job, Instant::now()));
            ask_why(client, job, sender.clone());
        }
        fault::place("top.draw");
        terminal.draw(|frame| draw::draw(&app, frame))?;
        let message = tokio::select! {
            message = messages.recv() => message,
            _ = pictures.tick() => continue,
            () = signals.next() => return Ok(exit::INTERRUPTED),
        };
        match message {
            Some(Message::Line(line, is_first)) => {
                (app.lost, lost_since, line_at) = (None, None, Instant::now());
                app.take(*line, is_first);
            }
            Some(Message::Lost(error)) => {
                let since = *lost_since.get_or_insert_with(Instant::now);
                if is_final(&error) || since.elapsed() >= fault::span("top.patience", RETRY_MAX) {
                    return Err(error.into());
                }
                let words = one_line(&gristmill_runtime::chain(&error));
                app.lost = Some(format!("no line from the master, trying again: {words}"));
            }
            Some(Message::Key(key)) => match app.press(key) {
                Some(Order::Quit) => return Ok(exit::OK),
                Some(Order::Cancel(job)) => cancel(client, job, sender.clone()),
                None => {}
            },
            Some(Message::Why(job, sentences)) => app.why = Some((job, sentences)),
            Some(Message::Note(words)) => app.note = Some(words),
            Some(Message::Resized) => {}
            Some(Message::Gone) | None => return Ok(exit::INTERRUPTED),
        }
    }
}

/// Signals that end the process.
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

/// Sends each line of the feed, and reconnects when the master is lost.
async fn follow(client: Arc<AsyncClient>, sender: mpsc::Sender<Message>) {
    loop {
        let lost = match client.feed().await {
            Ok(mut feed) => {
                let mut is_first = true;
                loop {
                    match feed.next().await {
                        Ok(line) => {
                            if sender.send(Message::Line(Box::new(line), is_first)).await.is_err() {
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
        if sender.send(Message::Lost(lost)).await.is_err() {
            return;
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Makes a message fit one line of the screen.
fn one_line(text: &str) -> String {
    sanitize::line(text, sanitize::MESSAGE_BYTES_MAX)
}

/// True if a retry is of no use: the master rejects this key.
fn is_final(error: &ClientError) -> bool {
    matches!(error, ClientError::Master { source, .. }
        if matches!(**source, HttpError::Unauthorized { .. } | HttpError::Forbidden { .. } | HttpError::PinMismatch { .. }))
}

/// Reads keys on a thread of its own, as a terminal can only be waited for by blocking.
fn read_keys(sender: mpsc::Sender<Message>) -> std::io::Result<()> {
    let read = move || {
        while !sender.is_closed() {
            let message = match event::poll(KEY_PAUSE) {
                Ok(false) => continue,
                Ok(true) => match event::read() {
                    Ok(Event::Key(key)) => Message::Key(key),
                    Ok(Event::Resize(..)) => Message::Resized,
                    Ok(_) => continue,
                    Err(_) => Message::Gone,
                },
                Err(_) => Message::Gone,
            };
            let gone = matches!(message, Message::Gone);
            if sender.blocking_send(message).is_err() || gone {
                return;
            }
        }
    };
    std::thread::Builder::new().name("keys".to_owned()).spawn(read).map(drop)
}

fn ask_why(client: &Arc<AsyncClient>, job: JobId, sender: mpsc::Sender<Message>) {
    let client = client.clone();
    tokio::spawn(async move {
        // A job that the master does not explain has no reasons next to it.
        if let Ok(why) = client.explain(job, None).await {
            let sentences = why.sentences.iter().map(|sentence| one_line(sentence)).collect();
            let _ = sender.send(Message::Why(job, sentences)).await;
        }
    });
}

fn cancel(client: &Arc<AsyncClient>, job: JobId, sender: mpsc::Sender<Message>) {
    let client = client.clone();
    tokio::spawn(async move {
        let words = match client.cancel(job).await {
            Ok(()) => format!("{job} is being cancelled"),
            Err(error) => {
                let role = if is_final(&error) { "; cancelling needs a key of the role submit" } else { "" };
                format!("{job} was not cancelled: {}{role}", one_line(&gristmill_runtime::chain(&error)))
            }
        };
        let _ = sender.send(Message::Note(words)).await;
    });
}
