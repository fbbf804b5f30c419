//! `run --narrate` and `--narrate-html` of twelve lines: every pair, partition, fetch and group is the job's own, and is
//! counted here independently.

use crate::support::Sandbox;
use crate::support::oracle;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

const TEXT: &str = "the mill turns and the mill grinds\nthe stream turns the wheel\nthe wheel turns the stone\n\
grain goes in and flour comes out\nthe miller sings a song of grain\na song of stone and stream\n\
the wind is still and the mill is still\nthe miller waits for rain\nrain fills the stream again\n\
the stream turns the wheel again\nthe wheel turns the stone again\nand the mill grinds on\n";

const SPLIT_BYTES: usize = 150;
const REDUCES: u32 = 3;

/// A pair: key and value.
type Pair = (String, String);

/// A step of a story: its title, and the text below it.
struct Step {
    title: String,
    lines: Vec<String>,
}

fn steps(text: &str) -> Vec<Step> {
    let head = Regex::new(r"^ *[0-9.]+ (?:ns|µs|ms|s) +[0-9]+\. (.*)$").unwrap();
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        match (head.captures(line), steps.last_mut()) {
            (Some(found), _) => steps.push(Step { title: found[1].to_owned(), lines: Vec::new() }),
            (None, Some(step)) => step.lines.push(line.trim().to_owned()),
            (None, None) => panic!("the story begins with {line:?}"),
        }
    }
    steps
}

impl Step {
    /// Returns the rows of the table with this first word in its head.
    fn table(&self, first: &str) -> Vec<Vec<&str>> {
        let at = self.lines.iter().position(|line| line.split("   ").next() == Some(first)).unwrap();
        let columns = |line: &'_ String| line.matches("   ").count();
        assert!(0 < columns(&self.lines[at]));
        let rows = self.lines[at + 1..].iter().take_while(|line| line.contains("   ") && !line.contains('→'));
        rows.map(|line| line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect()
    }

    /// Returns the pairs of the list after the line that ends with these words.
    fn pairs(&self, behind: &str) -> Vec<String> {
        let at = self.lines.iter().position(|line| line.ends_with(behind)).unwrap();
        let lines = self.lines[at + 1..].iter().take_while(|line| line.contains('→'));
        lines.flat_map(|line| line.split("   ")).map(str::to_owned).collect()
    }
}

/// Returns the steps whose titles have this start and this end, by the number in between.
fn steps_between<'a>(steps: &'a [Step], from: &str, until: &str) -> BTreeMap<u32, &'a Step> {
    let between = |step: &'a Step| {
        let rest = step.title.strip_prefix(from)?;
        let (number, rest) = rest.split_once(' ')?;
        rest.starts_with(until).then(|| (number.parse().unwrap(), step))
    };
    steps.iter().filter_map(between).collect()
}

/// The words of each split: a line belongs to the split that contains its first byte.
fn words_by_split() -> Vec<Vec<&'static str>> {
    let mut splits = vec![Vec::new(); TEXT.len().div_ceil(SPLIT_BYTES)];
    let mut at = 0;
    for line in TEXT.split_inclusive('\n') {
        splits[at / SPLIT_BYTES].extend(line.split_whitespace());
        at += line.len();
    }
    splits
}

/// The hash of a key of at most 15 bytes, implemented again from `worker/FORMAT.md`.
fn hash(key: &str) -> u64 {
    let mut bytes = [0; 16];
    bytes[..key.len()].copy_from_slice(key.as_bytes());
    bytes[15] = key.len() as u8 + 1;
    let half = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (low, high) = (half(0) ^ 0x6A09_E667_F3BC_C909, half(8) ^ 0xBB67_AE85_84CA_A73B);
    let product = u128::from(low) * u128::from(high);
    (product as u64 ^ (product >> 64) as u64) | 1
}

fn partition(key: &str) -> u32 {
    ((u128::from(hash(key)) * u128::from(REDUCES)) >> 64) as u32
}

fn counts<'a>(words: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    words.into_iter().for_each(|word| *counts.entry(word.to_owned()).or_default() += 1);
    counts
}

fn story(sandbox: &Sandbox, text: &str, rest: &[&str]) -> String {
    let input = sandbox.write("mill.txt", text);
    let split = format!("{SPLIT_BYTES}B");
    let reduces = REDUCES.to_string();
    let arguments =
        ["run", "wordcount", &input, "--workers", "2", "--split-size", &split, "--reduces", &reduces];
    let told = arguments.into_iter().chain(["--narrate", "--quiet"]).chain(rest.iter().copied());
    sandbox.run_well(told).stdout_text()
}

#[test]
fn story_of_twelve_lines_has_the_pairs_partitions_fetches_and_groups_of_the_job() {
    assert_eq!(hash("a"), 0x3cd6_fe0b_0443_a4f7, "the known answer of the specification");
    let sandbox = Sandbox::new();
    let (out, trace) = (sandbox.text("out"), sandbox.text("trace.json"));
    let text = story(&sandbox, TEXT, &["--output", &out, "--trace", &trace]);
    let steps = steps(&text);
    let splits = words_by_split();
    let maps = steps_between(&steps, "map-", "has ended");
    assert_eq!(maps.len(), splits.len());
    let mut segments: BTreeMap<(u32, u32), Vec<Pair>> = BTreeMap::new();
    for (map, words) in (0..).zip(&splits) {
        check_map(maps[&map], words);
        for row in maps[&map].table("partition") {
            let pair = (row[1].to_owned(), row[2].to_owned());
            segments.entry((map, row[0].parse().unwrap())).or_default().push(pair);
        }
    }
    let parts: Vec<String> = oracle::parts(&sandbox.path("out"))
        .into_iter()
        .map(|part| String::from_utf8(part).unwrap())
        .collect();
    let reduces = steps_between(&steps, "reduce-", "has ended");
    assert_eq!(reduces.len(), REDUCES as usize);
    for (&partition, step) in &reduces {
        check_reduce(step, partition, &segments, &parts[partition as usize], splits.len() as u32);
    }
    check_fetches(&steps, &std::fs::read_to_string(trace).unwrap());
}

/// Checks what a map emitted, what its combiner made of it, and the destination of each pair.
fn check_map(step: &Step, words: &[&str]) {
    let emitted = step.pairs("in this order:");
    assert_eq!(emitted, words.iter().map(|word| format!("{word} → 1")).collect::<Vec<_>>());
    let rows = step.table("partition");
    let combined: BTreeMap<String, u64> =
        rows.iter().map(|row| (row[1].to_owned(), row[2].parse().unwrap())).collect();
    assert_eq!(combined, counts(words.iter().copied()));
    assert_eq!(rows.len(), combined.len(), "each key once");
    for row in rows {
        let key = row[1];
        assert_eq!(row[0], partition(key).to_string(), "{key}");
        assert_eq!(row[3], format!("{:016x}", hash(key)), "{key}");
    }
}

/// Checks the order in which a reduce read its pairs, and the groups that it made of them.
fn check_reduce(
    step: &Step,
    partition: u32,
    segments: &BTreeMap<(u32, u32), Vec<Pair>>,
    part: &str,
    maps: u32,
) {
    let of_map = |map: u32| segments.get(&(map, partition)).map(|pairs| (map, pairs));
    let present: Vec<_> = (0..maps).filter_map(of_map).collect();
    let read: Vec<String> = present
        .iter()
        .flat_map(|(map, pairs)| pairs.iter().map(move |(key, value)| format!("{key} → {value} (map-{map})")))
        .collect();
    assert_eq!(step.pairs("went in like this:"), read);
    let froms: Vec<Vec<String>> = step
        .table("from")
        .into_iter()
        .map(|row| row[..2].iter().map(|&cell| cell.to_owned()).collect())
        .collect();
    let expected = present.iter().map(|(map, pairs)| vec![format!("map-{map}"), pairs.len().to_string()]);
    assert_eq!(froms, expected.collect::<Vec<_>>());
    let mine = TEXT.split_whitespace().filter(|word| self::partition(word) == partition);
    let groups: Vec<(String, u64)> = counts(mine).into_iter().collect();
    let rows = step.table("key");
    let told: Vec<(String, u64)> =
        rows.iter().map(|row| (row[0].to_owned(), row[1].parse().unwrap())).collect();
    assert_eq!(told, groups);
    let written: Vec<String> = rows.iter().map(|row| row[2].replace(" ⇥ ", "\t")).collect();
    assert_eq!(written, part.lines().collect::<Vec<_>>());
}

/// Checks the source and destination of each fetch against the trace.
fn check_fetches(steps: &[Step], trace: &str) {
    let told = Regex::new(
        r"^(worker-\d+) (?:fetches|reads) what (map-\d+) made for it (?:from (worker-\d+): (\d+) B|where it lies)$",
    );
    let told = told.unwrap();
    let mut of_story: Vec<(String, String, String)> = steps
        .iter()
        .filter_map(|step| told.captures(&step.title))
        .map(|found| {
            let bytes = found.get(4).map_or("0", |bytes| bytes.as_str());
            let from = found.get(3).map_or(&found[1], |from| from.as_str());
            (format!("{} from {from}", &found[2]), found[1].to_owned(), bytes.to_owned())
        })
        .collect();
    let trace: serde_json::Value = serde_json::from_str(trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let fetches = events.filter(|event| event["cat"] == "fetch" || event["cat"] == "in place");
    let mut of_trace: Vec<(String, String, String)> = fetches
        .map(|event| {
            let name = event["name"].as_str().unwrap().to_owned();
            (name, format!("worker-{}", event["pid"]), event["args"]["bytes"].to_string())
        })
        .collect();
    of_story.sort();
    of_trace.sort();
    assert_eq!(of_story, of_trace);
    assert!(!of_trace.is_empty());
}

/// Returns the story in a picture.
fn pictured(sandbox: &Sandbox, page: &str) -> Value {
    let page = std::fs::read_to_string(sandbox.path(page)).unwrap();
    let (_, rest) = page.split_once("id=\"story\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn picture_has_the_pairs_bins_groups_and_lines_of_the_job_and_its_discarded_attempt() {
    let sandbox = Sandbox::new();
    sandbox.arm_panic("map");
    let (out, page) = (sandbox.text("out"), sandbox.text("page.html"));
    story(&sandbox, TEXT, &["--output", &out, "--narrate-html", &page]);
    assert!(sandbox.has_fired("map"));
    let told = pictured(&sandbox, "page.html");
    let rows = |value: &Value| serde_json::from_value::<Vec<(u32, String, String)>>(value.clone()).unwrap();
    let mut segments: BTreeMap<u32, Vec<(u32, String, String)>> = BTreeMap::new();
    for (map, words) in (0..).zip(words_by_split()) {
        let of_map = &told["maps"][map.to_string()];
        let emitted: Vec<Pair> = serde_json::from_value(of_map["emitted"].clone()).unwrap();
        assert_eq!(
            emitted,
            words.iter().map(|word| ((*word).to_owned(), "1".to_owned())).collect::<Vec<_>>()
        );
        let output = rows(&of_map["output"]);
        let expected = counts(words.iter().copied()).into_iter();
        let mut expected: Vec<_> =
            expected.map(|(key, count)| (partition(&key), key, count.to_string())).collect();
        let mut stored = output.clone();
        stored.sort();
        expected.sort();
        assert_eq!(stored, expected);
        for (partition, key, value) in output {
            segments.entry(partition).or_default().push((map, key, value));
        }
    }
    for (partition, part) in oracle::parts(&sandbox.path("out")).into_iter().enumerate() {
        let reduce = &told["reduces"][partition.to_string()];
        assert_eq!(rows(&reduce["read"]), segments[&(partition as u32)]);
        let groups = reduce["groups"].as_array().unwrap().iter();
        let lines = groups.flat_map(|group| group["lines"].as_array().unwrap());
        let lines = lines.map(|line| line.as_str().unwrap().replace(" ⇥ ", "\t"));
        assert_eq!(lines.collect::<Vec<_>>(), String::from_utf8(part).unwrap().lines().collect::<Vec<_>>());
    }
    let scenes = || told["steps"].as_array().unwrap().iter().map(|step| &step["scene"]);
    let count = |kind: &str| scenes().filter(|scene| scene["type"] == kind).count();
    assert_eq!(count("discarded"), 1);
    assert_eq!(count("launched"), count("ended") + 1);
    assert_eq!(count("published"), 1);
    let again = ["run", "wordcount", &page, "--narrate-html", &page];
    sandbox.run(again).expect_code(3).expect_words(&["the story", "--overwrite"]);
}

#[test]
fn hostile_text_ends_no_element_of_the_picture() {
    let sandbox = Sandbox::new();
    let page = sandbox.text("page.html");
    story(&sandbox, "</script><b>k /*STORY*/ <!--\n", &["--narrate-html", &page]);
    let told = pictured(&sandbox, "page.html");
    assert_eq!(told["maps"]["0"]["lines"][0], "</script><b>k /*STORY*/ <!--");
    assert_eq!(std::fs::read_to_string(&page).unwrap().matches("</script>").count(), 2, "its own two");
}

#[test]
fn hostile_text_drives_no_terminal() {
    let sandbox = Sandbox::new();
    let hostile = "<script>alert(1)</script> \x1b[31mred a&b 'quoted'\n";
    let text = story(&sandbox, hostile, &[]);
    assert!(text.contains("<script>alert(1)</script> → 1"), "{text}");
    assert!(!text.contains('\x1b'), "nothing drives a terminal, and there is none to colour");
}

#[test]
fn story_of_a_sort_merges_by_key_and_then_by_map() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("lines.txt", "pear\napple\nfig\napple\nquince\nfig\n");
    let arguments = ["run", "sort", &input, "--workers", "2", "--split-size", "12B", "--reduces", "1"];
    let text = sandbox.run_well(arguments.into_iter().chain(["--narrate", "--quiet"])).stdout_text();
    let steps = steps(&text);
    let reduces = steps_between(&steps, "reduce-", "has ended");
    let keys: Vec<String> = reduces[&0]
        .pairs("That gave:")
        .iter()
        .map(|pair| {
            let (key, rest) = pair.split_once(" → ").unwrap();
            format!("{key}{}", &rest[rest.find('(').unwrap()..])
        })
        .collect();
    assert_eq!(
        keys,
        ["apple(map-0)", "apple(map-1)", "fig(map-0)", "fig(map-2)", "pear(map-0)", "quince(map-1)"]
    );
}

#[test]
fn story_tells_the_attempt_that_won_and_that_another_was_discarded() {
    let sandbox = Sandbox::new();
    sandbox.arm_panic("map");
    let text = story(&sandbox, TEXT, &[]);
    let steps = steps(&text);
    let failed = steps.iter().filter(|step| step.title.contains("is discarded")).count();
    assert!(sandbox.has_fired("map"));
    assert_eq!(failed, 1, "{text}");
    let maps = steps_between(&steps, "map-", "has ended");
    for (map, words) in (0..).zip(words_by_split()) {
        check_map(maps[&map], &words);
    }
}

#[test]
fn story_says_why_an_attempt_is_speculative_and_that_the_other_ended_first() {
    let sandbox = Sandbox::with_backups();
    let job =
        ["run", "synthetic", "--maps", "8", "--map-time", "100ms", "--reduces", "1", "--reduce-time", "1ms"];
    let cluster = ["--workers", "2", "--speed", "1,0.05", "--narrate", "--quiet"];
    let text = sandbox.run_well([&job[..], &cluster].concat()).stdout_text();
    for words in [
        " as a speculative attempt",
        ": speculative attempt: the first one has ",
        "succeeded first, so the master stops this one",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

#[test]
fn narration_beside_json_is_refused() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("mill.txt", TEXT);
    let refused = sandbox.run(["run", "wordcount", &input, "--narrate", "--json"]);
    refused.expect_code(2).expect_words(&["--narrate", "--json"]);
}

#[test]
fn story_of_a_broadcast_join_tells_the_table_once_and_what_each_map_wrote() {
    let sandbox = Sandbox::new();
    let people = sandbox.write("people.csv", "id,name\n1,Ada\n2,Bo\n");
    let bought = sandbox.write("bought.csv", "who,what\n3,tea\n1,milk\n2,salt\n1,oil\n");
    let told = sandbox
        .run_well([
            "run",
            "join",
            "--left",
            &bought,
            "--right",
            &people,
            "--on",
            "who=id",
            "--split-size",
            "12B",
            "--workers",
            "1",
            "--slots",
            "1",
            "--narrate",
        ])
        .stdout_text();
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let table =
        format!("in memory: {people}, with 2 records: byte of the file record 8 1,Ada 14 2,Bo It read ");
    assert_eq!(words.matches(&table).count(), 1, "told once: {told}");
    let maps = words.matches(" has ended after ").count();
    assert!(maps > 2, "{told}");
    let wrote = "What it wrote is one part of the output:";
    for row in [
        "9 3,tea It wrote nothing: its part of the output is empty.".to_owned(),
        format!("22 2,salt {wrote} 1,milk,1,Ada 2,salt,2,Bo"),
        format!("1,oil {wrote} 1,oil,1,Ada"),
    ] {
        assert!(words.contains(&row), "{row}: {told}");
    }
}
