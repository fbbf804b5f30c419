//! Compares `pagerank` with an iteration over maps: the same ranks to the last bit.

use crate::stage::{SHAPES, Stage, random};
use rand::RngExt;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pagerank");

type Links = BTreeMap<String, BTreeSet<String>>;

/// Returns links between pages, some of them duplicates. Low numbers are popular, and high ones have no
/// links.
fn links(seed: u64) -> (String, Links) {
    let mut random = random(seed);
    let (mut text, mut links) = (String::new(), Links::new());
    for _ in 0..600 {
        let from = format!("p{}", random.random_range(0..90));
        let to = format!("p{}", random.random_range(0..100) * random.random_range(0..100) / 99);
        text.push_str(&format!("{from}\t{to}\n"));
        links.entry(to.clone()).or_default();
        links.entry(from).or_default().insert(to);
    }
    (text, links)
}

/// Returns pages by rank, and the number of rounds.
fn ranking(links: &Links, damping: f64, tolerance: f64) -> (String, u32) {
    let mut ranks: BTreeMap<&str, f64> = links.keys().map(|page| (page.as_str(), 1.0)).collect();
    let billionths = |rank: f64| (rank * 1e9).round() as u64;
    let mut rounds = 0;
    loop {
        rounds += 1;
        let dead = links.iter().filter(|(_, to)| to.is_empty());
        let lost: u64 = dead.map(|(page, _)| billionths(ranks[page.as_str()])).sum();
        let lost_each = lost as f64 / 1e9 / links.len() as f64;
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (page, to) in links {
            for target in to {
                *sums.entry(target).or_default() += ranks[page.as_str()] / to.len() as f64;
            }
        }
        let mut change = 0;
        for (page, rank) in &mut ranks {
            let sum = sums.get(page).copied().unwrap_or(0.0);
            let next = 1.0 - damping + damping * (sum + lost_each);
            change += billionths((next - *rank).abs());
            *rank = next;
        }
        if (change as f64) < tolerance * 1e9 {
            break;
        }
    }
    let mut pages: Vec<(&str, f64)> = ranks.into_iter().collect();
    pages.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    (pages.iter().map(|(page, rank)| format!("{page}\t{rank}\n")).collect(), rounds)
}

#[test]
fn pagerank_gives_the_same_ranks_to_the_last_bit_for_any_cluster_and_any_number_of_parts() {
    let stage = Stage::new();
    let (text, links) = links(3);
    stage.write("links.txt", &text);
    let (expected, rounds) = ranking(&links, 0.85, 1e-2);
    assert!(3 < rounds && links.values().any(BTreeSet::is_empty), "{rounds} rounds test little");
    for shape in SHAPES {
        let output = format!("ranks-{}-{}", shape.0, shape.1);
        let arguments = format!("pagerank links.txt --tolerance 1e-2 --top 7 --output {output}");
        let printed = stage.run(PROGRAM, shape, &arguments);
        assert_eq!(stage.parts(&format!("{output}/ranking")).concat(), expected, "{shape:?}");
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected.lines().take(7).collect::<Vec<_>>());
        // Of all the rounds only the requested output is left.
        assert_eq!(fs::read_dir(stage.path(&output)).unwrap().count(), 1);
    }
}

#[test]
fn pagerank_stops_after_the_rounds_it_may_have() {
    let stage = Stage::new();
    // One round: b gets all of a's rank, and each gets half of b's former rank, as b has no links.
    stage.write("links.txt", "a b\n");
    let printed =
        stage.run(PROGRAM, (1, 1), "pagerank links.txt --rounds-max 1 --damping 0.5 --output ranks");
    assert_eq!(printed, "b\t1.25\na\t0.75\n");
}
