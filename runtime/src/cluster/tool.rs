//! Programs of the system that place processes elsewhere. Each is called with a list of arguments, gets its input
//! through a pipe, and is killed if its output exceeds a limit of time or length.
//!
//! Their names are here; the calls are in the command line (`cli`).

use super::child::start_tool;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// Longest output that is read of a program, bytes; also of its stderr.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// A program that places processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tool {
    /// OpenSSH's client.
    Ssh,
    /// Slurm's program to submit a job.
    Sbatch,
    /// Slurm's program to list jobs.
    Squeue,
    /// Slurm's program to cancel jobs.
    Scancel,
    /// A Python with Ray.
    Python(PathBuf),
}

impl Tool {
    fn program(&self) -> &OsStr {
        match self {
            Tool::Ssh => OsStr::new("ssh"),
            Tool::Sbatch => OsStr::new("sbatch"),
            Tool::Squeue => OsStr::new("squeue"),
            Tool::Scancel => OsStr::new("scancel"),
            Tool::Python(path) => path.as_os_str(),
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program().to_string_lossy())
    }
}

/// Input of a program.
pub enum ToolInput {
    /// No input.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file.
    File(File),
}

/// A call of a program.
pub struct ToolCall {
    /// The program.
    pub tool: Tool,
    /// Its arguments, without secrets: other users of the machine can see them.
    pub words: Vec<String>,
    /// Its input.
    pub input: ToolInput,
    /// Its time limit.
    pub limit: Duration,
}

/// Result of a program.
#[derive(Debug)]
pub struct ToolAnswer {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

/// Reason for which a program has no result.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum ToolError {
    /// It could not be started.
    #[error("could not start `{tool}`")]
    Start {
        tool: Tool,
        #[source]
        source: io::Error,
    },
    /// It took too long.
    #[error("`{tool}` did not end within {limit:?}")]
    Slow { tool: Tool, limit: Duration },
    /// Its pipes broke.
    #[error("could not hear what `{tool}` says")]
    Pipe {
        tool: Tool,
        #[source]
        source: io::Error,
    },
}

impl ToolCall {
    /// Makes the call.
    ///
    /// # Errors
    /// A program that does not exist or does not end in time. An exit code other than 0 is a result.
    pub async fn make(self) -> Result<ToolAnswer, ToolError> {
        let ToolCall { tool, words, input, limit } = self;
        match tokio::time::timeout(limit, talk(&tool, &words, input)).await {
            Ok(answer) => answer,
            Err(_) => Err(ToolError::Slow { tool, limit }),
        }
    }
}

async fn talk(tool: &Tool, words: &[String], input: ToolInput) -> Result<ToolAnswer, ToolError> {
    let (stdin, bytes) = match input {
        ToolInput::Nothing => (Stdio::null(), Vec::new()),
        ToolInput::Bytes(bytes) => (Stdio::piped(), bytes),
        ToolInput::File(file) => (Stdio::from(file), Vec::new()),
    };
    let started = start_tool(tool.program(), words, stdin);
    let mut child = started.map_err(|source| ToolError::Start { tool: tool.clone(), source })?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program that ends without reading reports the reason itself.
            let _ = stdin.write_all(&bytes).await;
        }
    };
    let (_, stdout, stderr) = tokio::join!(write, read(stdout), read(stderr));
    let pipe = |source| ToolError::Pipe { tool: tool.clone(), source };
    let (stdout, stderr) = (stdout.map_err(pipe)?, stderr.map_err(pipe)?);
    let status = child.wait().await.map_err(pipe)?;
    Ok(ToolAnswer { code: status.code(), stdout, stderr })
}

async fn read(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let mut pipe = pipe.take(ANSWER_BYTES_MAX);
        pipe.read_to_end(&mut bytes).await?;
        // Output beyond the limit is read and dropped, so that its writer ends; the call's time limit bounds that.
        tokio::io::copy(&mut pipe.into_inner(), &mut tokio::io::sink()).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
