//! The terminal while `top` has it, and its way back: at an end, an error, a signal, a panic.
//!
//! Invariant: whatever ends this process in order, the terminal is as it was before.

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// The terminal is not as it was. It goes back once: whoever leaves the other screen twice moves the cursor into what was
/// written meanwhile.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A terminal that draws on a screen of its own. Gives the other one back when it goes.
pub(super) struct Screen(pub(super) Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    /// Takes the terminal of standard output.
    pub(super) fn take() -> io::Result<Self> {
        give_back_at_panics();
        // From here on it goes back, whatever comes.
        TAKEN.store(true, Ordering::SeqCst);
        let guard = GiveBack;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        std::mem::forget(guard);
        Ok(Self(terminal))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        give_back();
    }
}

/// A terminal that is gone needs nothing.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
}

/// Words about a panic go to the screen that stays.
fn give_back_at_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}
