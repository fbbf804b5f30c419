//! TF-IDF: words that distinguish each document from the others, in three rounds.
//!
//! The weight of a word in a document is its share of the document's words, times the logarithm of the
//! number of documents divided by the number of those that contain the word. Between the rounds values
//! are written as they are, one line of JSON each.

use gristmill::prelude::*;

/// Weight words by how well they distinguish a document from the others
#[derive(clap::Args)]
struct TfIdf {
    /// Documents, a file each
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,
}

impl Rounds for TfIdf {
    const NAME: &'static str = "tf-idf";

    fn drive(&self, client: &mut Client) -> anyhow::Result<String> {
        let counts = client.round("counts", Round::Counts { inputs: self.inputs.clone() })?;
        let shares = client.round("shares", Round::Shares { input: counts.as_input() })?;
        let documents = shares.counter("documents") as f64;
        let weights = client.round("weights", Round::Weights { input: shares.as_input(), documents })?;
        Ok(weights.lines()?.join("\n"))
    }
}

#[derive(Serialize, Deserialize)]
enum Round {
    /// Counts how often each word occurs in each document.
    Counts { inputs: Vec<String> },
    /// Computes the share of each word among its document's words.
    Shares { input: String },
    /// Multiplies the share by the rarity of the word.
    Weights { input: String, documents: f64 },
}

impl Job for Round {
    const NAME: &'static str = "tf-idf-round";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        Ok(match self {
            Round::Counts { inputs } => counts(inputs),
            Round::Shares { input } => shares(input),
            Round::Weights { input, documents } => weights(input, *documents),
        })
    }
}

fn counts(inputs: &[String]) -> JobPlan {
    let words = |line: Record<'_>, out: &mut Emitter<(String, String), u64>| {
        for word in line.text().split_whitespace() {
            out.emit((line.source().path.clone(), word.to_lowercase()), 1);
        }
        Ok(())
    };
    JobPlan::map_each(Input::lines(inputs), words)
        .combine(Sum::new)
        .reduce_each(|(document, word), counts, out| out.json(&(document, word, counts.iter().sum::<u64>())))
}

fn shares(input: &str) -> JobPlan {
    let by_document = |line: Record<'_>, out: &mut Emitter<String, (String, u64)>| {
        let (document, word, count): (String, String, u64) = line.json()?;
        out.emit(&document, (word, count));
        Ok(())
    };
    JobPlan::map_each(Input::lines([input]), by_document).reduce_each(|document, words, out| {
        out.count("documents", 1);
        let words: Vec<(String, u64)> = words.iter().collect();
        let all = words.iter().map(|(_, count)| count).sum::<u64>() as f64;
        words.iter().try_for_each(|(word, count)| out.json(&(word, document, *count as f64 / all)))
    })
}

fn weights(input: &str, documents: f64) -> JobPlan {
    let by_word = |line: Record<'_>, out: &mut Emitter<String, (String, f64)>| {
        let (word, document, share): (String, String, f64) = line.json()?;
        out.emit(&word, (document, share));
        Ok(())
    };
    JobPlan::map_each(Input::lines([input]), by_word).reduce_each(move |word, shares, out| {
        let shares: Vec<(String, f64)> = shares.iter().collect();
        let rareness = (documents / shares.len() as f64).ln();
        shares.iter().for_each(|(document, share)| out.pair((document, word), share * rareness));
        Ok(())
    })
}

fn registry() -> Registry {
    Registry::new().rounds::<TfIdf>().inner_job::<Round>()
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(registry())
}

#[test]
fn a_word_that_all_documents_have_weighs_nothing_and_a_rare_one_much() {
    let mut cluster = gristmill::testing::LocalCluster::start(&registry()).unwrap();
    let inputs = ["so say so SAY", "so be"].map(|text| cluster.file(&text[..4], text).unwrap());
    let weights = cluster.drive(&TfIdf { inputs: inputs.to_vec() }).unwrap();
    let (half, [a, b]) = (2f64.ln() / 2.0, &inputs);
    let expected = [(b, "be", half), (b, "so", 0.0), (a, "say", half), (a, "so", 0.0)];
    let expected = expected.map(|(document, word, weight)| format!("{document}\t{word}\t{weight}"));
    let mut weights: Vec<&str> = weights.lines().collect();
    weights.sort_unstable();
    assert_eq!(weights, expected);
}
