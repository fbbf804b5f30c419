//! PageRank: several jobs one after another until the ranks converge.
//!
//! `links` collects the links of each page, `step` moves rank along them as often as needed, `ranking`
//! sorts pages by rank. Each round reads the directory that the previous round wrote. Counters show the
//! driver when to stop. A page's rank is `1 - d + d * (sum of shares + share of rank that ended at pages
//! without links)`, so that the mean of all ranks is 1. Not here: spam, weights, personalisation.
//!
//! Sums of floats depend on the order of addition. So there is no combiner, and the key is (page, source
//! of the share): each page's shares are sorted by source, and the ranks are the same bytes for any
//! `--reduces`.

use gristmill::prelude::*;
use std::cmp::Reverse;
use std::fs;

/// Counters are integers. They count billionths of a rank, so that their sum is independent of the order.
const UNITS_PER_RANK: f64 = 1e9;

/// Page, and the source of a message about it: `None` for the page itself, which sorts first, `Some` for
/// that page.
type PageFrom = (String, Option<String>);

/// Rank pages by the links between them
#[derive(clap::Args)]
struct PageRank {
    /// Files with one link on each line: page, white space, page linked to
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,
    /// Share of a page's rank that it passes on along its links
    #[arg(long, default_value_t = 0.85)]
    damping: f64,
    /// Stop when the ranks of all pages together changed by less
    #[arg(long, default_value_t = 1e-6)]
    tolerance: f64,
    /// Stop after this many rounds in any case
    #[arg(long, value_name = "N", default_value_t = 100)]
    rounds_max: u32,
    /// Print the N best pages; the output directory has all of them
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

impl Rounds for PageRank {
    const NAME: &'static str = "pagerank";

    fn drive(&self, client: &mut Client) -> anyhow::Result<String> {
        let mut before = client.round("links", Links { inputs: self.inputs.clone() })?;
        let pages = before.counter("pages") as f64;
        for round in 1..=self.rounds_max {
            let inputs = directory(&before);
            let lost = before.counter("lost") as f64 / UNITS_PER_RANK;
            let step = Step { inputs, damping: self.damping, lost_each: lost / pages };
            let after = client.round(&format!("round-{round}"), step)?;
            // The next round does not read this directory.
            client.discard(&before)?;
            before = after;
            if (before.counter("change") as f64) < self.tolerance * UNITS_PER_RANK {
                break;
            }
        }
        let ranking = client.round("ranking", Ranking { inputs: directory(&before) })?;
        client.discard(&before)?;
        let mut best = Vec::new();
        for part in ranking.parts() {
            // Parts are in order: the first pages of the first parts are the best.
            let lines = fs::read_to_string(part)?;
            best.extend(lines.lines().take(self.top - best.len()).map(str::to_owned));
        }
        Ok(best.join("\n"))
    }
}

/// Returns the output of one round as the input of the next.
fn directory(report: &JobReport) -> Vec<String> {
    vec![report.as_input()]
}

/// Round 0: one line for each page that has links or is linked to: page, rank 1, pages linked to.
#[derive(Serialize, Deserialize)]
struct Links {
    inputs: Vec<String>,
}

impl Job for Links {
    const NAME: &'static str = "pagerank-links";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        Ok(JobPlan::map(Input::lines(&self.inputs), || ParseLink)
            .group_by_first()
            .reduce(GatherLinks::default))
    }
}

struct ParseLink;

impl Mapper for ParseLink {
    type Key = PageFrom;
    type Value = ();

    fn map(&mut self, line: Record<'_>, out: &mut Emitter<PageFrom, ()>) -> TaskResult {
        let line = line.text();
        if let Some((from, to)) = line.trim().split_once(|c: char| c.is_ascii_whitespace()) {
            // The target of a link is a page as well, even if it has no links of its own.
            out.emit((to.trim_start().to_owned(), None), ());
            out.emit((from.to_owned(), Some(to.trim_start().to_owned())), ());
        }
        Ok(())
    }
}

#[derive(Default)]
struct GatherLinks {
    pages: Counter,
    lost: Counter,
}

impl Reducer for GatherLinks {
    type Key = PageFrom;
    type Value = ();

    fn setup(&mut self, task: &TaskContext, _: &mut Output) -> TaskResult {
        (self.pages, self.lost) = (task.counter("pages"), task.counter("lost"));
        Ok(())
    }

    fn reduce(
        &mut self,
        (page, _): PageFrom,
        links: &mut Values<'_, PageFrom, ()>,
        out: &mut Output,
    ) -> TaskResult {
        let mut distinct: Vec<String> = Vec::new();
        while links.next()?.is_some() {
            // Keys are sorted, so a duplicate of a link follows directly after it.
            if let (_, Some(link)) = links.key()?
                && distinct.last() != Some(&link)
            {
                distinct.push(link);
            }
        }
        self.pages.add(1);
        if distinct.is_empty() {
            self.lost.add(UNITS_PER_RANK as u64);
        }
        out.pair(page, format_args!("1\t{}", distinct.join(" ")));
        Ok(())
    }
}

/// One round: the same lines with new ranks.
#[derive(Serialize, Deserialize)]
struct Step {
    inputs: Vec<String>,
    damping: f64,
    /// Rank that each page receives from the pages without links.
    lost_each: f64,
}

impl Job for Step {
    const NAME: &'static str = "pagerank-step";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let (damping, lost_each) = (self.damping, self.lost_each);
        let add =
            move || AddShares { damping, lost_each, change: Counter::default(), lost: Counter::default() };
        Ok(JobPlan::map(Input::lines(&self.inputs), || PassOn).group_by_first().reduce(add))
    }
}

/// Message about a page.
#[derive(Serialize, Deserialize)]
enum Message {
    /// From the page itself: its previous state.
    Page { rank: f64, links: String },
    /// From a page that links to it: a share of that page's rank.
    Share(f64),
}

struct PassOn;

impl Mapper for PassOn {
    type Key = PageFrom;
    type Value = Message;

    fn map(&mut self, line: Record<'_>, out: &mut Emitter<PageFrom, Message>) -> TaskResult {
        let (page, rank, links) = parse(&line)?;
        let count = links.split_whitespace().count() as f64;
        for link in links.split_whitespace() {
            out.emit((link.to_owned(), Some(page.clone())), Message::Share(rank / count));
        }
        out.emit((page, None), Message::Page { rank, links });
        Ok(())
    }
}

/// Parses page, rank and links of a line.
fn parse(line: &Record<'_>) -> TaskResult<(String, f64, String)> {
    let text = line.text();
    let mut fields = text.splitn(3, '\t');
    match (fields.next(), fields.next(), fields.next()) {
        (Some(page), Some(rank), Some(links)) => Ok((page.to_owned(), rank.parse()?, links.to_owned())),
        _ => Err(TaskError::input(format!("{} has a line without three fields", line.source().path))),
    }
}

struct AddShares {
    damping: f64,
    lost_each: f64,
    change: Counter,
    lost: Counter,
}

impl Reducer for AddShares {
    type Key = PageFrom;
    type Value = Message;

    fn setup(&mut self, task: &TaskContext, _: &mut Output) -> TaskResult {
        (self.change, self.lost) = (task.counter("change"), task.counter("lost"));
        Ok(())
    }

    fn reduce(
        &mut self,
        (page, _): PageFrom,
        messages: &mut Values<'_, PageFrom, Message>,
        out: &mut Output,
    ) -> TaskResult {
        let Some(Message::Page { rank: before, links }) = messages.next()? else {
            return Err(TaskError::input(format!("{page} is linked to, but has no line")));
        };
        let mut shares = 0.0;
        while let Some(message) = messages.next()? {
            if let Message::Share(share) = message {
                shares += share;
            }
        }
        let rank = 1.0 - self.damping + self.damping * (shares + self.lost_each);
        self.change.add(((rank - before).abs() * UNITS_PER_RANK).round() as u64);
        if links.is_empty() {
            self.lost.add((rank * UNITS_PER_RANK).round() as u64);
        }
        // A float is written with enough digits to read the same float back.
        out.pair(page, format_args!("{rank}\t{links}"));
        Ok(())
    }
}

/// The last round: pages by rank, the highest first, over all parts.
#[derive(Serialize, Deserialize)]
struct Ranking {
    inputs: Vec<String>,
}

impl Job for Ranking {
    const NAME: &'static str = "pagerank-ranking";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        Ok(JobPlan::map(Input::lines(&self.inputs), || RankAsKey).total_order().reduce(|| WriteRank))
    }
}

struct RankAsKey;

impl Mapper for RankAsKey {
    type Key = (Reverse<f64>, String);
    type Value = ();

    fn map(&mut self, line: Record<'_>, out: &mut Emitter<Self::Key, ()>) -> TaskResult {
        let (page, rank, _) = parse(&line)?;
        out.emit((Reverse(rank), page), ());
        Ok(())
    }
}

struct WriteRank;

impl Reducer for WriteRank {
    type Key = (Reverse<f64>, String);
    type Value = ();

    fn reduce(
        &mut self,
        (Reverse(rank), page): Self::Key,
        _: &mut Values<'_, Self::Key, ()>,
        out: &mut Output,
    ) -> TaskResult {
        out.pair(page, rank);
        Ok(())
    }
}

fn main() -> std::process::ExitCode {
    let registry = Registry::new().rounds::<PageRank>();
    gristmill::cli::main(registry.inner_job::<Links>().inner_job::<Step>().inner_job::<Ranking>())
}
