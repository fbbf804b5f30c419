//! Hosts that the system's `ssh` reaches: workers are started there by this same program, which is sent along where it is
//! not, and ended there by it.
//!
//! Each call of `ssh` asks nothing of a person, has a time, and gives the far shell words that mean the same to every shell.
//! What is secret or long goes over standard input ([`super::guest`]).

use super::PlaceError;
use super::guest::{BeginAnswer, BeginOrder, EndAnswer, EndOrder};
use super::record::{SshHost, SshPlace};
use gristmill_runtime::cluster::{Tool, ToolAnswer, ToolCall, ToolError, ToolInput};
use gristmill_worker::protocol::ProgramSum;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long a host may take to say whether the program is there, once it is reached.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// How long it may take to start workers, or to end them.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// How long the program may take to get there.
const SEND_MAX: Duration = Duration::from_secs(300);

/// Of a program that was sent, the folders around it, from the home folder of its user.
pub const PROGRAMS_FOLDER: &str = ".cache/gristmill/programs";

/// The file of this process's program, also when another has taken its place.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// What `ssh` itself ends with when it fails.
const SSH_FAILED: i32 = 255;

/// What a host says when the program is there, and when not.
const THERE: &str = "there";

/// Why a host does not take part.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No answer.
    #[error(transparent)]
    Tool {
        #[from]
        source: ToolError,
    },
    /// It was not reached.
    #[error("could not be reached: {said}")]
    Unreached { said: String },
    /// What was to be done there was not.
    #[error("could not {what}: {said}")]
    Refused { what: &'static str, said: String },
    /// The own program cannot be read.
    #[error("could not read the program to send")]
    Program {
        #[source]
        source: io::Error,
    },
    /// It cannot be written down that something is asked of it.
    #[error(transparent)]
    Record {
        #[from]
        source: PlaceError,
    },
}

/// The path of this program on hosts that it is sent to: its checksum is in it, so another build never takes its place.
///
/// # Errors
/// A program that cannot be read.
pub fn sent_program() -> Result<String, HostError> {
    let summed = File::open(OWN_PROGRAM).and_then(ProgramSum::of_reader);
    let (sum, _) = summed.map_err(|source| HostError::Program { source })?;
    Ok(format!("{PROGRAMS_FOLDER}/{sum}/gristmill"))
}

/// Whether every shell takes a path as the one word that it is.
pub fn is_plain(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"./_-+".contains(&byte);
    !path.is_empty() && !path.starts_with('-') && path.bytes().all(plain)
}

/// One host, and how it is spoken to.
#[derive(Clone)]
struct Line {
    host: SshHost,
    number: usize,
    place: Arc<SshPlace>,
}

/// What comes of each host, by its number in the place.
pub type Outcomes<T> = Vec<(usize, Result<T, HostError>)>;

/// What is told of a host before anything is started there: its number, and whether the program is sent.
pub type Asked = Arc<dyn Fn(usize, bool) -> Result<(), PlaceError> + Send + Sync>;

/// Starts workers on all hosts, so many at once, with these words for each.
pub async fn begin(
    place: &SshPlace,
    join: &str,
    words: impl Fn(&SshHost) -> Vec<String>,
    asked: &Asked,
) -> Outcomes<BeginAnswer> {
    let begun = each_of(place, 0..place.hosts.len(), |line| {
        let (join, words) = (join.to_owned(), words(&line.host));
        let order = BeginOrder { name: guest_name(place, line.number), join, words };
        let asked = asked.clone();
        async move {
            let is_there = line.look().await?;
            asked(line.number, !is_there)?;
            if !is_there {
                line.send().await?;
            }
            line.order("start workers", "begin", &order).await
        }
    });
    begun.await
}

/// Ends what was started on hosts, or may have been; then removes the program where it was sent. Not before all have
/// ended: hosts may share a home folder.
pub async fn end(place: &SshPlace) -> Outcomes<EndAnswer> {
    let ended = each_of(place, place.touched().map(|(number, _)| number), |line| async move {
        let is_there = line.look().await?;
        if !is_there {
            if !line.can_be_sent() {
                // It was not there before either, so nothing was started by it.
                return Ok((EndAnswer { was_there: false, killed: false, log: String::new() }, false));
            }
            line.send().await?;
        }
        let order = EndOrder { name: guest_name(&line.place, line.number) };
        let answer: EndAnswer = line.order("end workers", "end", &order).await?;
        Ok((answer, line.host.sent || !is_there))
    });
    let ended = ended.await;
    let sent = ended.iter().filter(|(_, outcome)| outcome.as_ref().is_ok_and(|(_, sent)| *sent));
    let sent: Vec<usize> = sent.map(|(number, _)| *number).collect();
    let removed = each_of(place, sent.into_iter(), |line| async move { line.remove_program().await }).await;
    let mut failed: Vec<(usize, HostError)> = Vec::new();
    failed.extend(removed.into_iter().filter_map(|(number, outcome)| Some((number, outcome.err()?))));
    let outcomes = ended.into_iter().map(|(number, outcome)| {
        let at = failed.iter().position(|(other, _)| *other == number);
        match at {
            Some(at) => (number, Err(failed.swap_remove(at).1)),
            None => (number, outcome.map(|(answer, _)| answer)),
        }
    });
    outcomes.collect()
}

fn guest_name(place: &SshPlace, number: usize) -> String {
    format!("{}-{number}", place.name)
}

/// Does something with each of these hosts, so many at once, in their order.
async fn each_of<T, F>(
    place: &SshPlace,
    numbers: impl Iterator<Item = usize>,
    work: impl Fn(Line) -> F,
) -> Outcomes<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, HostError>> + Send + 'static,
{
    let shared = Arc::new(place.clone());
    let permits = Arc::new(Semaphore::new(place.at_once.max(1) as usize));
    let mut tasks = JoinSet::new();
    for number in numbers {
        let line = Line { host: place.hosts[number].clone(), number, place: shared.clone() };
        let (working, permits) = (work(line), permits.clone());
        tasks.spawn(async move {
            // It is closed by nobody.
            let _permit = permits.acquire_owned().await;
            (number, working.await)
        });
    }
    let mut outcomes = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    outcomes.sort_by_key(|(number, _)| *number);
    outcomes
}

impl Line {
    /// Whether the program is there; whether the host is, too.
    async fn look(&self) -> Result<bool, HostError> {
        let command = format!("test -x {} && echo {THERE} || echo absent", self.place.program);
        let answer = self.call(command, ToolInput::Nothing, LOOK_MAX).await?;
        match answer.code {
            // A host may greet first.
            Some(0) => Ok(answer.stdout.lines().last() == Some(THERE)),
            _ => self.refused("look for the program", &answer.stderr),
        }
    }

    /// Sends the program: it takes its name only once all of it is there.
    async fn send(&self) -> Result<(), HostError> {
        let program = &self.place.program;
        let unreadable = |source| HostError::Program { source };
        let (folder, draft) = (self.program_folder(), self.draft());
        // As `sent_program` has made it.
        let sum = folder.rsplit_once('/').map_or(folder, |(_, sum)| sum);
        let command = format!(
            "umask 077 && mkdir -p {folder} && cat > {draft} && echo '{sum}  {draft}' | sha256sum -c > /dev/null && \
             chmod 500 {draft} && mv {draft} {program}"
        );
        let file = File::open(OWN_PROGRAM).map_err(unreadable)?;
        let answer = self.call(command, ToolInput::File(file), SEND_MAX).await?;
        match answer.code {
            Some(0) => Ok(()),
            _ => self.refused("send the program", &answer.stderr),
        }
    }

    /// Whether the program lies where it is sent to, so that it can be sent once more.
    fn can_be_sent(&self) -> bool {
        self.place.program.starts_with(PROGRAMS_FOLDER)
    }

    /// Removes the program, or what is left of one that did not get there whole, and folders that have nothing else.
    async fn remove_program(&self) -> Result<(), HostError> {
        let (program, folder, draft) = (&self.place.program, self.program_folder(), self.draft());
        let around = PROGRAMS_FOLDER.rsplit_once('/').map_or(PROGRAMS_FOLDER, |(around, _)| around);
        let command = format!(
            "rm -f {program} {draft}; rmdir {folder} && rmdir {PROGRAMS_FOLDER} && rmdir {around} || true"
        );
        self.call(command, ToolInput::Nothing, LOOK_MAX).await?;
        Ok(())
    }

    /// Where the program lies there.
    fn program_folder(&self) -> &str {
        self.place.program.rsplit_once('/').map_or(".", |(folder, _)| folder)
    }

    /// What the program is called there until it is whole.
    fn draft(&self) -> String {
        format!("{}/draft-{}", self.program_folder(), guest_name(&self.place, self.number))
    }

    /// Has the program there do something, and reads what it answers.
    async fn order<T: DeserializeOwned>(
        &self,
        what: &'static str,
        verb: &str,
        order: &impl Serialize,
    ) -> Result<T, HostError> {
        let Ok(order) = serde_json::to_vec(order) else { return self.refused(what, "no order") };
        let command = format!("{} guest {verb}", self.place.program);
        let answer = self.call(command, ToolInput::Bytes(order), ANSWER_MAX).await?;
        let last = answer.stdout.lines().last().unwrap_or_default();
        match (answer.code, serde_json::from_str(last)) {
            (Some(0), Ok(said)) => Ok(said),
            _ => self.refused(what, &answer.stderr),
        }
    }

    fn refused<T>(&self, what: &'static str, said: &str) -> Result<T, HostError> {
        Err(HostError::Refused { what, said: last_words(said) })
    }

    /// Has the far shell carry out a command.
    async fn call(
        &self,
        command: String,
        input: ToolInput,
        limit: Duration,
    ) -> Result<ToolAnswer, HostError> {
        let connect = self.place.connect_s;
        let mut words: Vec<String> = Vec::new();
        if let Some(config) = &self.place.config {
            words.extend(["-F".to_owned(), config.display().to_string()]);
        }
        // A connection that falls silent counts as broken as soon as one that was never made.
        let options = [
            "BatchMode=yes".to_owned(),
            format!("ConnectTimeout={connect}"),
            format!("ServerAliveInterval={}", connect.div_ceil(2)),
            "ServerAliveCountMax=2".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
        ];
        words.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option]));
        words.push("-T".to_owned());
        if let Some(port) = self.host.port {
            words.extend(["-p".to_owned(), port.to_string()]);
        }
        words.extend(["--".to_owned(), self.host.target.clone(), command]);
        // `ssh` bounds the way to the host, but not what a server says before it asks who is there.
        let limit = limit + Duration::from_secs(2 * u64::from(connect));
        let answer = ToolCall { tool: Tool::Ssh, words, input, limit }.make().await?;
        match answer.code {
            Some(SSH_FAILED) => Err(HostError::Unreached { said: last_words(&answer.stderr) }),
            _ => Ok(answer),
        }
    }
}

/// The end of what a program has complained about, as one line.
fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join("; ");
    if last.is_empty() { "it said nothing".to_owned() } else { last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_programs_are_one_word_to_every_shell_or_refused() {
        for path in
            ["gristmill", "/opt/grist-mill_0.1+2/gristmill", ".cache/gristmill/programs/00ff/gristmill"]
        {
            assert!(is_plain(path), "{path}");
        }
        for path in ["", "-x", "a b", "a;b", "$HOME/x", "`x`", "a\nb", "~/x", "a'b", "a*", "\u{e9}"] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn last_words_of_a_program_are_one_line() {
        assert_eq!(last_words(" a\n\nb \nc\nd\n"), "b; c; d");
        assert_eq!(last_words("\n"), "it said nothing");
    }
}
