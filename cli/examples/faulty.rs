//! A program whose job misbehaves on request: it panics, aborts, hangs, exits, or prints without end. It
//! shows what user code can do to a cluster and what its user sees.
//!
//! ```text
//! cargo run --example faulty -- run faulty --how panic README.md
//! ```

use gristmill::prelude::*;
use gristmill::scheduler::catalogue::Entry;
use gristmill::scheduler::plan::Plan;
use gristmill::scheduler::policy::Policy;
use gristmill::scheduler::view::{Change, View};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Copies lines and misbehaves at those with the word "bad"
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
struct Faulty {
    /// Text files
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,
    /// Kind of misbehaviour
    #[arg(long, value_enum)]
    how: How,
    /// Exit code
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    code: i32,
    /// Misbehave in the reducer instead of the mapper
    #[arg(long)]
    in_reduce: bool,
    /// Order the whole output; the submitter then samples keys with the mapper
    #[arg(long)]
    total_order: bool,
    /// Hang for ever at the other lines
    #[arg(long)]
    stall: bool,
    /// Write lines with the word "odd" to a named output "odd" as well
    #[arg(long)]
    aside: bool,
    /// Misbehave only if this file exists, and remove it first
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Serialize, Deserialize, Clone, Copy, Debug)]
enum How {
    /// Panic
    Panic,
    /// Return an error
    Error,
    /// Refuse the record after emitting a part of it
    Refuse,
    /// Refuse the record when something of it has been emitted
    RefuseLate,
    /// Abort the process
    Abort,
    /// Recurse until the stack is used up
    Overflow,
    /// Exit, with code 0 as if all work were done
    Exit,
    /// Loop for ever
    Loop,
    /// Print two megabytes
    Print,
    /// Emit other keys each time, whatever the lines
    Random,
    /// Allocate memory until none is left
    Devour,
}

impl Faulty {
    fn is_bad(&self, line: &[u8]) -> bool {
        line.windows(3).any(|word| word == b"bad")
    }

    fn meet(&self, line: &[u8], in_reduce: bool) -> TaskResult {
        if in_reduce != self.in_reduce || !self.is_bad(line) {
            return Ok(());
        }
        if self.token.as_ref().is_some_and(|token| std::fs::remove_file(token).is_err()) {
            return Ok(());
        }
        match self.how {
            How::Panic => panic!("this line is bad: {}", String::from_utf8_lossy(line)),
            How::Error => Err(TaskError::new(format!("no good: {}", String::from_utf8_lossy(line)))),
            How::Refuse | How::RefuseLate => Err(TaskError::bad_record("the word is in it")),
            How::Abort => std::process::abort(),
            How::Overflow => {
                black_box(sink(0));
                Ok(())
            }
            How::Exit => std::process::exit(self.code),
            How::Loop => loop {
                std::hint::spin_loop();
            },
            How::Random => Ok(()),
            How::Devour => {
                let mut held = Vec::new();
                loop {
                    held.push(black_box(vec![1_u8; 16 << 20]));
                }
            }
            How::Print => {
                for number in 0..40_000 {
                    eprintln!("line {number:06} of a mapper that talks too much \x1b[31m");
                }
                Ok(())
            }
        }
    }
}

/// Uses up the stack: each call needs its own frame, and the compiler cannot see that the recursion never
/// ends.
fn sink(depth: u64) -> u64 {
    let room = black_box([depth; 64]);
    if black_box(true) { sink(depth + 1) + room[(depth % 64) as usize] } else { depth }
}

struct FaultyMapper(Faulty);

impl Mapper for FaultyMapper {
    type Key = ByteString;
    type Value = u64;

    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, u64>) -> TaskResult {
        if let How::Random = self.0.how {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_nanos());
            out.emit(format!("{now} {}", String::from_utf8_lossy(record.bytes())).as_bytes(), 1);
            return Ok(());
        }
        if let How::RefuseLate = self.0.how {
            out.emit(record.bytes(), 1);
        }
        self.0.meet(record.bytes(), false)?;
        while self.0.stall && !self.0.is_bad(record.bytes()) {
            std::thread::park();
        }
        out.emit(record.bytes(), 1);
        Ok(())
    }
}

struct FaultyReducer(Faulty);

impl Reducer for FaultyReducer {
    type Key = ByteString;
    type Value = u64;

    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, u64>,
        out: &mut Output,
    ) -> TaskResult {
        self.0.meet(key, true)?;
        while values.next()?.is_some() {
            match self.0.aside && key.windows(3).any(|word| word == b"odd") {
                true => out.named("odd")?.line(key),
                false => out.line(key),
            }
        }
        Ok(())
    }
}

impl Job for Faulty {
    const NAME: &'static str = "faulty";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let (mapper, reducer) = (self.clone(), self.clone());
        let plan = JobPlan::map(Input::lines(&self.inputs), move || FaultyMapper(mapper.clone()));
        let plan = if self.total_order { plan.total_order() } else { plan };
        Ok(plan.reduce(move || FaultyReducer(reducer.clone())))
    }
}

/// A policy that panics at every decision.
struct Panicky;

impl Policy for Panicky {
    fn name(&self) -> &'static str {
        "panicky"
    }
    fn observe(&mut self, _: View<'_>, _: Change) {}
    fn plan(&mut self, _: View<'_>, _: &mut Plan<'_>) {
        panic!("who comes next?");
    }
}

const PANICKY: Entry<dyn Policy> =
    Entry::new("panicky", "panics in the middle of its plan", |_| Ok(Box::new(Panicky)));

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::standard().job::<Faulty>().policy(&PANICKY))
}
