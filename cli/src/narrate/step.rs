//! Parts of a story, independent of its presentation.

/// One step of a story.
pub struct Step {
    /// Time of the step, nanoseconds after the job arrived.
    pub at_ns: u64,
    pub kind: StepKind,
    /// One line.
    pub title: String,
    pub blocks: Vec<StepBlock>,
    /// Names of its subjects among [`Lanes`](super::page::lanes): attempts and fetches.
    pub about: Vec<String>,
}

/// Subject of a step; also the order of simultaneous steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StepKind {
    Job,
    Input,
    Placement,
    Map,
    Fetch,
    Failure,
    Reduce,
    Output,
}

impl StepKind {
    /// Its class in the page's style, and its colour in a terminal.
    pub fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Job => ("job", "1"),
            Self::Input => ("input", "1"),
            Self::Placement => ("placement", "35"),
            Self::Map => ("map", "34"),
            Self::Fetch => ("fetch", "33"),
            Self::Failure => ("failure", "31"),
            Self::Reduce => ("reduce", "32"),
            Self::Output => ("output", "1"),
        }
    }
}

/// A piece of a step.
pub enum StepBlock {
    /// One or more sentences.
    Words(String),
    /// Short items in a row.
    Row(Vec<String>),
    /// Rows under a head.
    Table(StepTable),
}

/// Rows under a head.
pub struct StepTable {
    pub head: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

impl StepBlock {
    pub fn words(words: impl Into<String>) -> Self {
        Self::Words(words.into())
    }
}
