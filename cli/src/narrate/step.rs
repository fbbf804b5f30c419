//! Steps of a story.

/// One step of a story.
pub struct Step {
    /// Time, nanoseconds after the job's arrival.
    pub at_ns: u64,
    pub kind: StepKind,
    /// One line.
    pub title: String,
    pub blocks: Vec<StepBlock>,
}

/// Subject of a step; also the order of steps of one moment.
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
    /// Colour in a terminal.
    pub fn colour(self) -> &'static str {
        match self {
            Self::Job | Self::Input | Self::Output => "1",
            Self::Placement => "35",
            Self::Map => "34",
            Self::Fetch => "33",
            Self::Failure => "31",
            Self::Reduce => "32",
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
