//! Fault points at which a test can stop a worker or a submitter, to kill or continue it, and time spans that it can
//! shorten.
//!
//! Only in builds with debug assertions, and only if `GRISTMILL_FAULTS` names a directory. A token is a file
//! named after the fault point, such as `commit.before`. A process that reaches the fault point takes the
//! token, so a fault occurs exactly once per token, over all processes. It creates `PLACE.hit` with its
//! process id in it, and waits until that file is removed. A token with the content `panic` causes a panic
//! instead. In release builds this does nothing.

/// Directory of the tokens.
#[cfg(debug_assertions)]
fn directory() -> Option<&'static std::path::Path> {
    use std::path::PathBuf;
    use std::sync::OnceLock;

    static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();
    DIRECTORY.get_or_init(|| std::env::var_os("GRISTMILL_FAULTS").map(PathBuf::from)).as_deref()
}

/// Fails like a disk with an error if a test requests it: once for each token `PLACE`, or `PLACE.1`, `PLACE.2`, ...
///
/// # Errors
/// `EIO`.
#[cfg(debug_assertions)]
pub fn error(name: &str) -> std::io::Result<()> {
    /// Maximum tokens of one fault point.
    const TOKENS_MAX: u32 = 9;
    let Some(directory) = directory() else { return Ok(()) };
    let mut names = std::iter::once(name.to_owned()).chain((1..=TOKENS_MAX).map(|n| format!("{name}.{n}")));
    match names.any(|name| std::fs::remove_file(directory.join(name)).is_ok()) {
        true => Err(rustix::io::Errno::IO.into()),
        false => Ok(()),
    }
}

/// Does nothing in a release build.
///
/// # Errors
/// None.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn error(_name: &str) -> std::io::Result<()> {
    Ok(())
}

/// True if a test has created a file of this name.
#[cfg(debug_assertions)]
#[must_use]
pub fn is_armed(name: &str) -> bool {
    directory().is_some_and(|directory| directory.join(name).exists())
}

/// Returns false in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
#[must_use]
pub fn is_armed(_name: &str) -> bool {
    false
}

/// Stops here if a test requests it.
#[cfg(debug_assertions)]
pub fn place(name: &str) {
    use std::fs;
    use std::time::Duration;

    let Some(directory) = directory() else { return };
    let token = directory.join(name);
    let panics = fs::read(&token).is_ok_and(|text| text == b"panic");
    // The removal succeeds in one process only.
    if fs::remove_file(&token).is_err() {
        return;
    }
    assert!(!panics, "a test wants the engine to panic at {name}");
    let (built, hit) = (directory.join(format!("{name}.new")), directory.join(format!("{name}.hit")));
    let written = fs::write(&built, std::process::id().to_string()).and_then(|()| fs::rename(&built, &hit));
    while written.is_ok() && hit.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn place(_name: &str) {}

/// Returns a time span: the given one, unless a test has created a file of this name with other milliseconds.
#[cfg(debug_assertions)]
#[must_use]
pub fn span(name: &str, usual: std::time::Duration) -> std::time::Duration {
    let named =
        std::env::var_os("GRISTMILL_FAULTS").map(|directory| std::path::Path::new(&directory).join(name));
    let text = named.and_then(|path| std::fs::read_to_string(path).ok());
    let milliseconds = text.and_then(|text| text.trim().parse().ok());
    milliseconds.map_or(usual, std::time::Duration::from_millis)
}

/// Returns the given time span in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
#[must_use]
pub fn span(_name: &str, usual: std::time::Duration) -> std::time::Duration {
    usual
}
