//! Prints the schedule of each scenario on standard input, one JSON text per line: what a browser's must be equal to.

use std::io::{BufRead as _, Write as _};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for scenario in std::io::stdin().lock().lines() {
        writeln!(out, "{}", gristmill_playground::schedule(&scenario?))?;
    }
    Ok(())
}
