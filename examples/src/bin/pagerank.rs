//! PageRank: several jobs one after another until the ranks converge.
//!
//! `links` collects the links of each page, `step` moves rank along them as often as needed, `ranking`
//! sorts pages by rank. Each round reads the directory that the previous round wrote. Counters show the
//! driver when to stop. A page's rank is `1 - d + d * (sum of shares + share of rank that ended at pages
//! without links)`, so that the mean of all ranks is 1. Not here: spam, weights, personalisation.
//!
//! Sums of floats depend on the order of addition. So there is no combiner, and each page's shares are
//! sorted by their source: the ranks are the same bytes for any `--reduces`.

use gristmill::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;

/// Counters are integers. They count billionths of a rank, so that their sum is independent of the order.
const UNITS_PER_RANK: f64 = 1e9;

/// Page, its rank, and the pages that it links to: between two rounds a line of JSON.
type Page = (String, f64, Vec<String>);

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
        let mut before = client.round("links", Round::Links { inputs: self.inputs.clone() })?;
        let pages = before.counter("pages") as f64;
        for round in 1..=self.rounds_max {
            let lost = before.counter("lost") as f64 / UNITS_PER_RANK;
            let (input, damping) = (before.as_input(), self.damping);
            let step = Round::Step { input, damping, lost_each: lost / pages };
            let after = client.round(&format!("round-{round}"), step)?;
            // The next round does not read this directory.
            client.discard(&before)?;
            before = after;
            if (before.counter("change") as f64) < self.tolerance * UNITS_PER_RANK {
                break;
            }
        }
        let ranking = client.round("ranking", Round::Ranking { input: before.as_input() })?;
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

#[derive(Serialize, Deserialize)]
enum Round {
    /// Collects the links of each page that has links or is linked to. Its first rank is 1.
    Links { inputs: Vec<String> },
    /// Computes new ranks. Each page receives `lost_each` from the pages without links.
    Step { input: String, damping: f64, lost_each: f64 },
    /// Sorts pages by rank, the highest first, over all parts.
    Ranking { input: String },
}

impl Job for Round {
    const NAME: &'static str = "pagerank-round";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        Ok(match self {
            Round::Links { inputs } => links(inputs),
            Round::Step { input, damping, lost_each } => step(input, *damping, *lost_each),
            Round::Ranking { input } => ranking(input),
        })
    }
}

fn links(inputs: &[String]) -> JobPlan {
    let parse = |line: Record<'_>, out: &mut Emitter<String, Option<String>>| {
        if let Some((from, to)) = line.text().trim().split_once(|c: char| c.is_ascii_whitespace()) {
            // The target of a link is a page as well, even if it has no links of its own.
            out.emit(to.trim_start(), None);
            out.emit(from, Some(to.trim_start().to_owned()));
        }
        Ok(())
    };
    JobPlan::map_each(Input::lines(inputs), parse).reduce_each(|page, links, out| {
        let distinct: BTreeSet<String> = links.iter().flatten().collect();
        out.count("pages", 1);
        out.count("lost", if distinct.is_empty() { units(1.0) } else { 0 });
        out.json(&(page, 1.0, distinct))
    })
}

/// Message about a page.
#[derive(Serialize, Deserialize)]
enum Message {
    /// From the page itself: its previous state.
    Page { rank: f64, links: Vec<String> },
    /// From a page that links to it: a share of that page's rank.
    Share { source: String, rank: f64 },
}

fn step(input: &str, damping: f64, lost_each: f64) -> JobPlan {
    let pass_on = |line: Record<'_>, out: &mut Emitter<String, Message>| {
        let (page, rank, links): Page = line.json()?;
        let share = rank / links.len() as f64;
        for link in &links {
            out.emit(link, Message::Share { source: page.clone(), rank: share });
        }
        out.emit(&page, Message::Page { rank, links });
        Ok(())
    };
    JobPlan::map_each(Input::lines([input]), pass_on).reduce_each(move |page, messages, out| {
        let (mut before, mut links, mut shares) = (0.0, Vec::new(), Vec::new());
        for message in messages.iter() {
            match message {
                Message::Page { rank, links: own } => (before, links) = (rank, own),
                Message::Share { source, rank } => shares.push((source, rank)),
            }
        }
        shares.sort_by(|(one, _), (other, _)| one.cmp(other));
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        let rank = 1.0 - damping + damping * (sum + lost_each);
        out.count("change", units((rank - before).abs()));
        out.count("lost", if links.is_empty() { units(rank) } else { 0 });
        out.json(&(page, rank, links))
    })
}

fn units(rank: f64) -> u64 {
    (rank * UNITS_PER_RANK).round() as u64
}

fn ranking(input: &str) -> JobPlan {
    let by_rank = |line: Record<'_>, out: &mut Emitter<(Reverse<f64>, String), ()>| {
        let (page, rank, _): Page = line.json()?;
        out.emit((Reverse(rank), page), ());
        Ok(())
    };
    JobPlan::map_each(Input::lines([input]), by_rank).total_order().reduce_each(
        |(Reverse(rank), page), _, out| {
            out.pair(page, rank);
            Ok(())
        },
    )
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::new().rounds::<PageRank>().inner_job::<Round>())
}
