//! Jobs that are compared, their contestants, and their targets.

use crate::bench::words;
use crate::check::OutputKind;

/// Workers and slots of our cluster: those of `run` on two cores, as the other systems have two threads.
const CLUSTER: &str = "--workers 1 --slots 2";

/// Pattern of `grep-regex`.
const REGEX: &str = r"[Mm]onste?r\w*";

/// Text of `grep-fixed`.
const FIXED: &str = "Frankenstein";

/// Command of the sort.
const SORT: &str = "sort $DATA/tera-1g.txt --record-length 100 --key-bytes 0..10";

/// Command of the join without its strategy: user, country, page, revenue, in the format of the other
/// systems.
const JOIN: &str = "join --left $DATA/users.csv --right $DATA/visits.csv --on 1=2 \
                    --columns left.1,left.2,right.3,right.5 --strategy";

/// Remaining flags of the join with as many users as visits.
const LARGE_JOIN: &str = "--on 1=2 --columns left.1,left.2,right.3,right.5 --strategy repartition";

/// Memory of each worker in `wordcount-distinct`: less than its words need.
const LITTLE_MEMORY: &str = "--memory 256MiB";

/// Job that is compared.
#[derive(Clone, Copy, Debug)]
pub struct BenchRow {
    /// Name on the command line.
    pub name: &'static str,
    /// Title in one line.
    pub title: &'static str,
    /// Name in the limit program and the scripts of the others; empty where they have no such job.
    pub peers_name: &'static str,
    /// Files, or directories of files, in the data directory.
    pub inputs: &'static [&'static str],
    /// Kind of output, which defines the comparison.
    pub kind: OutputKind,
    /// Target of the row.
    pub target: RowTarget,
    /// Seconds of systems that do not run here.
    pub quoted: &'static [Quoted],
}

/// Target: ratio of our median wall time to that of another contestant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RowTarget {
    /// Maximum ratio.
    pub times: f64,
    /// Name of the other contestant.
    pub against: &'static str,
}

/// Figure measured by others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quoted {
    /// Name of the system.
    pub system: &'static str,
    /// Wall time, seconds.
    pub wall_s: f64,
}

/// Contestant that runs a row.
#[derive(Clone, PartialEq, Debug)]
pub struct Contestant {
    /// Name in the table.
    pub name: &'static str,
    /// Program and arguments, with variables for paths.
    pub command: Vec<String>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
}

const fn limit(times: f64) -> RowTarget {
    RowTarget { times, against: "limit" }
}

const fn ripgrep(times: f64) -> RowTarget {
    RowTarget { times, against: "ripgrep" }
}

const fn duckdb(times: f64) -> RowTarget {
    RowTarget { times, against: "DuckDB" }
}

const fn quoted(system: &'static str, wall_s: f64) -> Quoted {
    Quoted { system, wall_s }
}

/// All rows. Quoted seconds are those of RESULTS.md next to the other systems' programs.
pub const ROWS: [BenchRow; 14] = [
    BenchRow {
        name: "wordcount-books",
        title: "count the words of 1 GiB of books (49 thousand different ones)",
        peers_name: "wc-books",
        inputs: &["books-1g.txt"],
        kind: OutputKind::Counts,
        target: limit(1.4),
        quoted: &[quoted("Dask", 21.0), quoted("Spark", 30.5), quoted("Ray", 50.0), quoted("Hadoop", 131.1)],
    },
    BenchRow {
        name: "wordcount-zipf",
        title: "count the words of 1 GiB of generated text (4.6 million different ones)",
        peers_name: "wc-zipf",
        inputs: &["zipf-1g.txt"],
        kind: OutputKind::Counts,
        target: limit(1.3),
        quoted: &[quoted("Spark", 59.5), quoted("Hadoop", 114.9)],
    },
    BenchRow {
        name: "sort",
        title: "sort 10 million records of 100 bytes by their first 10",
        peers_name: "sort",
        inputs: &["tera-1g.txt"],
        kind: OutputKind::Sorted,
        target: limit(1.3),
        quoted: &[quoted("Spark", 27.7), quoted("Dask", 30.5), quoted("Hadoop", 31.9), quoted("Ray", 35.0)],
    },
    BenchRow {
        name: "sort-http",
        title: "the same sort with all bytes sent over HTTP",
        peers_name: "sort",
        inputs: &["tera-1g.txt"],
        kind: OutputKind::Sorted,
        target: limit(1.6),
        quoted: &[],
    },
    BenchRow {
        name: "join-broadcast",
        title: "join 1 million users with 10 million visits, users in the memory of each worker",
        peers_name: "join",
        inputs: &["users.csv", "visits.csv"],
        kind: OutputKind::Lines,
        target: limit(1.5),
        quoted: QUOTED_JOIN,
    },
    BenchRow {
        name: "join-repartition",
        title: "join 1 million users with 10 million visits through the shuffle",
        peers_name: "join",
        inputs: &["users.csv", "visits.csv"],
        kind: OutputKind::Lines,
        target: limit(2.0),
        quoted: QUOTED_JOIN,
    },
    BenchRow {
        name: "join-large",
        title: "join 10 million users with 10 million visits through the shuffle",
        peers_name: "",
        inputs: &["join-large/users.csv", "join-large/visits.csv"],
        kind: OutputKind::Lines,
        target: duckdb(0.5),
        quoted: &[],
    },
    BenchRow {
        name: "join-large-skewed",
        title: "the same with a tenth of the visits by one user",
        peers_name: "",
        inputs: &["join-large-skewed/users.csv", "join-large-skewed/visits.csv"],
        kind: OutputKind::Lines,
        target: duckdb(0.5),
        quoted: &[],
    },
    BenchRow {
        name: "grep-regex",
        title: r"lines of 1 GiB of books that match [Mm]onste?r\w*",
        peers_name: "grep-re",
        inputs: &["books-1g.txt"],
        kind: OutputKind::Lines,
        target: ripgrep(0.6),
        quoted: &[quoted("Dask", 7.2), quoted("Spark", 11.0), quoted("Hadoop", 11.4), quoted("Ray", 13.7)],
    },
    BenchRow {
        name: "grep-fixed",
        title: "lines of 1 GiB of books that hold a word",
        peers_name: "grep-fix",
        inputs: &["books-1g.txt"],
        kind: OutputKind::Lines,
        target: ripgrep(1.3),
        quoted: &[quoted("Spark", 11.1)],
    },
    BenchRow {
        name: "grep-small-files",
        title: "lines of 50,000 files of 2 kB that hold a word",
        peers_name: "",
        inputs: &["small-files"],
        kind: OutputKind::Lines,
        target: ripgrep(1.0),
        quoted: &[],
    },
    BenchRow {
        name: "wordcount-gzip",
        title: "count the words of 1 GiB of books in 8 files packed by gzip",
        peers_name: "",
        inputs: &["books-gz", "books-1g.txt"],
        kind: OutputKind::Counts,
        target: RowTarget { times: 1.2, against: UNPACKED_FIRST },
        quoted: &[],
    },
    BenchRow {
        name: "wordcount-zstd",
        title: "count the words of 1 GiB of books in 8 files packed by zstd",
        peers_name: "",
        inputs: &["books-zst", "books-1g.txt"],
        kind: OutputKind::Counts,
        target: RowTarget { times: 1.2, against: UNPACKED_FIRST },
        quoted: &[],
    },
    BenchRow {
        name: "wordcount-distinct",
        title: "count the words of 1 GiB of generated text (16.8 million different ones) in less memory than they need",
        peers_name: "",
        inputs: &["distinct-1g.txt"],
        kind: OutputKind::Counts,
        target: RowTarget { times: 1.3, against: AMPLE_MEMORY },
        quoted: &[],
    },
];

/// Name of the contestant that decompresses files to nowhere, two at a time, and then counts the words of
/// the plain ones.
const UNPACKED_FIRST: &str = "unpacking, then ours";

/// Name of the same job with memory for all words.
const AMPLE_MEMORY: &str = "ours, ample memory";

const QUOTED_JOIN: &[Quoted] =
    &[quoted("Dask", 14.9), quoted("Ray", 21.0), quoted("Spark", 31.4), quoted("Hadoop", 34.7)];

/// Names of our own contestants and of the limit. All others are peers.
pub const NOT_PEERS: [&str; 6] =
    ["ours", "ours, synced", "limit", "limit, synced", UNPACKED_FIRST, AMPLE_MEMORY];

/// Returns the row of this name.
pub fn row(name: &str) -> Option<BenchRow> {
    ROWS.into_iter().find(|row| row.name == name)
}

impl BenchRow {
    /// Returns the inputs with variables.
    pub fn input_paths(&self) -> Vec<String> {
        self.inputs.iter().map(|name| format!("$DATA/{name}")).collect()
    }

    /// Returns our job and its flags, without those of the cluster and the output.
    fn our_job(&self) -> Vec<String> {
        match self.name {
            "sort" => words(SORT),
            "sort-http" => words(&format!("{SORT} --shuffle http")),
            "join-broadcast" => words(&format!("{JOIN} broadcast")),
            "join-repartition" => words(&format!("{JOIN} repartition")),
            "join-large" | "join-large-skewed" => {
                let [users, visits] = [0, 1].map(|side| self.inputs[side]);
                words(&format!("join --left $DATA/{users} --right $DATA/{visits} {LARGE_JOIN}"))
            }
            "grep-regex" => ["grep", REGEX, "$DATA/books-1g.txt"].map(str::to_owned).to_vec(),
            "grep-fixed" => words(&format!("grep --fixed-strings {FIXED} $DATA/books-1g.txt")),
            "grep-small-files" => words(&format!("grep --fixed-strings {FIXED} $DATA/small-files")),
            "wordcount-distinct" => words(&format!("wordcount $DATA/distinct-1g.txt {LITTLE_MEMORY}")),
            _ => words(&format!("wordcount $DATA/{}", self.inputs[0])),
        }
    }

    /// Returns our command. It waits for the disk if `sync`.
    pub fn our_command(&self, sync: bool) -> Vec<String> {
        let mut command = words("$GRISTMILL run");
        command.extend(self.our_job());
        command.extend(words(CLUSTER));
        if !sync {
            command.push("--no-sync".to_owned());
        }
        command.extend(words("--output $OUT"));
        command
    }

    /// Returns the contestants of this row: ours, the limit, and the strongest others.
    pub fn contestants(&self) -> Vec<Contestant> {
        let plain = |name, command| Contestant { name, command, environment: Vec::new() };
        let shell = |name, script: String| plain(name, vec!["sh".to_owned(), "-c".to_owned(), script]);
        let (job, input) = (self.peers_name, self.inputs[self.inputs.len() - 1]);
        if job.is_empty() {
            return vec![
                plain("ours", self.our_command(false)),
                plain("ours, synced", self.our_command(true)),
                self.reference(),
            ];
        }
        let script =
            |name, file: &str| plain(name, words(&format!("$PYTHON $PEERS/{file} {job} $DATA/{input} $OUT")));
        let mut all = vec![
            plain("ours", self.our_command(false)),
            plain("limit", words(&format!("$LIMIT {job} $DATA/{input} $OUT"))),
            plain("ours, synced", self.our_command(true)),
            shell("limit, synced", format!(r#""$LIMIT" {job} "$DATA/{input}" "$OUT" && sync "$OUT"/*"#)),
        ];
        let (duckdb, polars) = (script("DuckDB", "duckdb_jobs.py"), script("Polars", "polars_jobs.py"));
        match self.kind {
            OutputKind::Counts => {
                let mut renoir = plain("Renoir", words(&format!("$RENOIR {job} $DATA/{input} $OUT")));
                renoir.environment = vec![("RENOIR_MODE".to_owned(), "fold".to_owned())];
                all.extend([renoir, duckdb, polars]);
            }
            OutputKind::Sorted => {
                let sort = format!(r#"LC_ALL=C sort --parallel=2 -S4G "$DATA/{input}" -o "$OUT/part-0""#);
                all.extend([duckdb, polars, shell("GNU sort", sort)]);
            }
            OutputKind::Lines if job == "join" => all.extend([duckdb, polars]),
            OutputKind::Lines => {
                let (fixed, pattern) = if job == "grep-fix" { ("-F ", FIXED) } else { ("", REGEX) };
                let rest = format!(r#"'{pattern}' "$DATA/{input}" > "$OUT/part-0""#);
                all.push(shell("ripgrep", format!(r#""$RG" -N --no-filename {fixed}{rest}"#)));
            }
        }
        all
    }
}

impl BenchRow {
    /// Returns the contestant to compare ours with where the limit program and the other systems have no
    /// such job.
    fn reference(&self) -> Contestant {
        let unpacking = |tool: &str, ending: &str| {
            let unpack = format!(
                r#"printf '%s\n' "$DATA/{}"/*.{ending} | xargs -P2 -n1 {tool} -dc > /dev/null"#,
                self.inputs[0]
            );
            let count = format!(
                r#""$GRISTMILL" run wordcount "$DATA/books-1g.txt" {CLUSTER} --no-sync --output "$OUT""#
            );
            format!("{unpack} && {count}")
        };
        if self.target.against == "DuckDB" {
            let command = words(&format!("$PYTHON $PEERS/duckdb_jobs.py join $DATA/{} $OUT", self.inputs[1]));
            return Contestant { name: self.target.against, command, environment: Vec::new() };
        }
        let script = match self.name {
            "grep-small-files" => {
                format!(r#""$RG" -N --no-filename -F '{FIXED}' "$DATA/small-files" > "$OUT/part-0""#)
            }
            "wordcount-gzip" => unpacking("gzip", "gz"),
            "wordcount-zstd" => unpacking("zstd", "zst"),
            _ => format!(
                r#""$GRISTMILL" run wordcount "$DATA/{}" {CLUSTER} --no-sync --output "$OUT""#,
                self.inputs[0]
            ),
        };
        let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
        Contestant { name: self.target.against, command, environment: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_known_by_name() {
        assert_eq!(row("sort").unwrap().peers_name, "sort");
        assert!(row("sorts").is_none());
    }

    #[test]
    fn our_command_names_job_inputs_cluster_and_output() {
        let command = |name: &str, sync| row(name).unwrap().our_command(sync).join(" ");
        assert_eq!(
            command("wordcount-zipf", false),
            "$GRISTMILL run wordcount $DATA/zipf-1g.txt --workers 1 --slots 2 --no-sync --output $OUT"
        );
        assert_eq!(
            command("grep-fixed", true),
            "$GRISTMILL run grep --fixed-strings Frankenstein $DATA/books-1g.txt --workers 1 --slots 2 --output $OUT"
        );
    }

    #[test]
    fn every_row_has_its_target_among_its_contestants_and_names_no_one_twice() {
        for row in ROWS {
            let mut names: Vec<_> = row.contestants().into_iter().map(|one| one.name).collect();
            assert!(names.contains(&row.target.against), "{}", row.name);
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", row.name);
        }
    }
}
