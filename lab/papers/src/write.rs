//! Results of a run of papers as a directory: a page, its charts and tables, and a file for programs.
//!
//! `index.html` is self-contained. `PAPER/ID.svg` and `PAPER/ID.csv` hold each chart and table.
//! `results.json` holds all results, and `run.json` the time, machine and duration. For simulations the
//! same seed and scale produce the same bytes, except for `run.json` and the last line of the page. The
//! directory is put in place atomically. Not here: experiments, and the drawing of charts
//! ([`gristmill_lab::report`]).

use super::model::{Paper, PaperScale};
use gristmill_lab::IoError;
use gristmill_lab::report::Circumstances;
use gristmill_lab::report::{Document, DocumentPart, Tally};
use gristmill_worker::exit::{self, Exit, ExitsWith};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Version of the fields of `results.json` and `run.json`.
pub const SCHEMA: u32 = 1;

/// File that identifies a directory written by this module.
pub const MARK: &str = "run.json";

/// Results of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Requested name: a paper's name or `all`.
    pub asked: String,
    /// True for runs on real processes, false for the papers' models.
    pub real: bool,
    /// Amount of simulation.
    pub scale: PaperScale,
    /// Requested seed. Random draws start at [`super::first_seed`] of it.
    pub seed: u64,
    /// Papers in the order in which they ran.
    pub papers: Vec<Paper>,
    /// Papers whose experiments failed.
    pub failures: Vec<FailedPaper>,
}

/// Paper whose experiments failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FailedPaper {
    /// Name of the paper.
    pub name: String,
    /// Description of the error.
    pub error: String,
}

/// Content of `results.json`.
#[derive(Serialize)]
struct PaperResults<'a> {
    schema: u32,
    version: &'static str,
    asked: &'a str,
    real: bool,
    scale: PaperScale,
    seed: u64,
    tallies: Vec<(&'a str, Tally)>,
    papers: &'a [Paper],
    failures: &'a [FailedPaper],
}

/// Content of `run.json`.
#[derive(Serialize)]
struct CircumstancesFile<'a> {
    schema: u32,
    #[serde(flatten)]
    circumstances: &'a Circumstances,
}

impl Run {
    /// Returns the command that produces the same results.
    #[must_use]
    pub fn command(&self) -> String {
        let scale = match self.scale {
            PaperScale::Quick => " --quick",
            PaperScale::Normal => "",
            PaperScale::Full => " --full",
        };
        let real = if self.real { " --real" } else { "" };
        format!("gristmill lab paper {}{real}{scale} --seed {}", self.asked, self.seed)
    }

    /// Returns all files of the directory, with their paths in it.
    ///
    /// # Errors
    /// Results that cannot be written as JSON.
    pub fn files(&self, circumstances: &Circumstances) -> Result<Vec<(PathBuf, Vec<u8>)>, PaperWriteError> {
        let parts: Vec<DocumentPart<'_>> = self.papers.iter().map(part).collect();
        let page = Document {
            title: &self.title(),
            lead: &self.lead(),
            parts: &parts,
            summary: true,
            footer: &[rules(), circumstances.words()].concat(),
        };
        let mut files = vec![(PathBuf::from("index.html"), page.html().into_bytes())];
        for (part, paper) in parts.iter().zip(&self.papers) {
            for (name, content) in part.files() {
                files.push((Path::new(paper.name).join(name), content.into_bytes()));
            }
        }
        let results = PaperResults {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            asked: &self.asked,
            real: self.real,
            scale: self.scale,
            seed: self.seed,
            tallies: self.papers.iter().map(|paper| (paper.name, Tally::count(&paper.sections))).collect(),
            papers: &self.papers,
            failures: &self.failures,
        };
        files.push((PathBuf::from("results.json"), json("results.json", &results)?));
        files.push((PathBuf::from(MARK), json(MARK, &CircumstancesFile { schema: SCHEMA, circumstances })?));
        Ok(files)
    }

    fn title(&self) -> String {
        let way = if self.real { "on real execution" } else { "run again" };
        match self.papers.as_slice() {
            [paper] => format!("The {} paper, {way}", paper.name),
            papers => format!("{} papers on scheduling, {way}", in_words(papers.len())),
        }
    }

    fn lead(&self) -> Vec<String> {
        let scale = match self.scale {
            PaperScale::Quick => "Quick: seconds for each paper, so the intervals are wide.",
            PaperScale::Normal => "Minutes for each paper.",
            PaperScale::Full => "As large as the papers' own runs.",
        };
        let how = match self.real {
            true => "on real processes: master, workers, shuffle and commits as they run for users",
            false => "with its policies as they run on a live cluster",
        };
        let same = match self.real {
            true => {
                "Another run gives other times; the jobs, their arrivals and their data are the same. Repetitions \
                     meet jobs of their own."
            }
            false => "The same command gives the same numbers.",
        };
        let mut lead = vec![format!(
            "The experiments of each paper, {how}. Made by `{}`, version {}. {scale} {same} How claims are judged stands at \
                 the end.",
            self.command(),
            env!("CARGO_PKG_VERSION")
        )];
        for failure in &self.failures {
            lead.push(format!("`{}` is missing: {}", failure.name, failure.error));
        }
        lead
    }
}

/// Rules of all verdicts.
fn rules() -> Vec<String> {
    vec![
        "± is half the width of a 95 % interval. Dashed lines are printed or reference curves; where a paper prints \
         only a curve, its claim is judged. A reference number is computed by hand. Every chart and table can be had \
         as a file."
            .to_owned(),
        "A number agrees if the 95 % interval of its difference from the other one holds 0, widened by the rounding of \
         what is printed; it agrees in part if only a stated difference of the models explains it. It stays open if that \
         interval reaches further than a tenth of the number: then a large difference would not have been seen. So \
         of twenty numbers that are right one is expected to differ. What was put in is marked as input and not counted. A \
         claim about samples holds if intervals show it, fails if they show the contrary, and stays open otherwise; \
         one that is true or not in each run holds if it is in all of them, fails if it is not in more than half, and \
         stays open of fewer than five; where a word such as \"much\" needs a limit, the claim says which."
            .to_owned(),
    ]
}

fn part(paper: &Paper) -> DocumentPart<'_> {
    DocumentPart {
        name: paper.name,
        title: paper.title,
        about: &paper.about,
        sections: &paper.sections,
        directory: Some(paper.name),
    }
}

fn in_words(count: usize) -> String {
    let words = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"];
    words.get(count).map_or_else(|| count.to_string(), |&word| word.to_owned())
}

fn json(name: &str, value: &impl Serialize) -> Result<Vec<u8>, PaperWriteError> {
    let mut text = serde_json::to_vec(value)
        .map_err(|error| IoError::during("build", Path::new(name))(io::Error::other(error)))?;
    text.push(b'\n');
    Ok(text)
}

/// Reason why a directory of a page or of runs cannot be written. Exit code 3.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PaperWriteError {
    /// The directory exists and is not empty.
    #[error("the output directory {path} exists and is not empty")]
    NotEmpty {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The path contains files of another program, which must not be removed.
    #[error(
        "the output directory {path} has no {MARK}, so it was not written by this command and is not replaced"
    )]
    NotOurs {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The path is not a directory.
    #[error("the output {path} exists and is not a directory")]
    NotADirectory {
        /// Path that is not a directory.
        path: PathBuf,
    },
    /// Another process runs experiments in it.
    #[error("another process runs experiments into {path}; wait for it, or choose another --out")]
    Held {
        /// Path of the directory.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error(transparent)]
    Io(#[from] IoError),
}

impl ExitsWith for PaperWriteError {
    fn exit(&self) -> Exit {
        match self {
            Self::NotEmpty { .. } => {
                Exit::hinted(exit::ENVIRONMENT, "choose another directory, or add --overwrite")
            }
            _ => Exit::with(exit::ENVIRONMENT),
        }
    }
}

/// Directory to be written. Its files are first built in a hidden directory next to it.
#[derive(Debug)]
pub struct PaperDirectory {
    path: PathBuf,
    building: PathBuf,
    overwrite: bool,
}

impl PaperDirectory {
    /// Checks that a directory can be written, before hours are spent on its content. With `overwrite`,
    /// files that an earlier run wrote there are replaced at the end.
    ///
    /// # Errors
    /// The reason why it cannot be written.
    pub fn claim(path: &Path, overwrite: bool) -> Result<Self, PaperWriteError> {
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::path::absolute(path).map_err(IoError::during("resolve", path))?
            }
            Err(error) => return Err(IoError::during("look at", path)(error).into()),
        };
        check(&path, overwrite)?;
        let parent = path.parent().unwrap_or(&path).to_path_buf();
        fs::create_dir_all(&parent).map_err(IoError::during("create", &parent))?;
        let building = hidden_sibling(&path);
        fs::create_dir(&building).map_err(IoError::during("create", &building))?;
        Ok(Self { path, building, overwrite })
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes these files and moves the directory into place.
    ///
    /// # Errors
    /// A file operation failed, or the path was created by another process meanwhile. Then nothing is
    /// written.
    pub fn write(self, files: &[(PathBuf, Vec<u8>)]) -> Result<(), PaperWriteError> {
        for (name, content) in files {
            let path = self.building.join(name);
            let directory = path.parent().unwrap_or(&self.building);
            fs::create_dir_all(directory).map_err(IoError::during("create", directory))?;
            fs::write(&path, content).map_err(IoError::during("write", &path))?;
        }
        check(&self.path, self.overwrite)?;
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(IoError::during("remove", &self.path)(error).into());
            }
            _ => {}
        }
        Ok(fs::rename(&self.building, &self.path)
            .map_err(IoError::during("put into its place", &self.path))?)
    }
}

impl Drop for PaperDirectory {
    /// Removes files that were not moved into place.
    fn drop(&mut self) {
        // The directory does not exist if all went well. If it cannot be removed, the error cannot be
        // reported.
        let _ = fs::remove_dir_all(&self.building);
    }
}

/// Returns a hidden directory next to this one, for this process.
fn hidden_sibling(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".writing-{}", std::process::id()));
    path.with_file_name(name)
}

fn check(path: &Path, overwrite: bool) -> Result<(), PaperWriteError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(PaperWriteError::NotADirectory { path: path.to_path_buf() });
        }
        Err(error) => return Err(IoError::during("list", path)(error).into()),
    };
    if entries.count() == 0 {
        return Ok(());
    }
    if !overwrite {
        return Err(PaperWriteError::NotEmpty { path: path.to_path_buf() });
    }
    if !path.join(MARK).is_file() {
        return Err(PaperWriteError::NotOurs { path: path.to_path_buf() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_lab::report::{Block, Chart, ChartKind, Claim, Compared, ReportTable, Section, Series};
    use std::collections::BTreeSet;

    /// Returns a paper with a block of each kind.
    fn paper() -> Paper {
        let axes = ["load", "response, s"].map(gristmill_lab::report::Axis::linear);
        let chart = Chart::new(
            ChartKind::Lines,
            "figure-5",
            "Response",
            axes,
            vec![Series::new("fifo", vec![(0.5, 2.0)])],
        );
        let blocks = vec![
            Block::Chart(chart),
            Block::Table(ReportTable::new("table-2", "Means", Vec::new(), Vec::new())),
            Block::Comparison(vec![Compared::new("load 0.5", 2.0, true)]),
            Block::Claims(vec![Claim::new("Section 5", "It grows.", true, "from 1 to 2")]),
        ];
        let sections = vec![Section::new("figure-5", "Figure 5: response", ["Twenty seeds."], blocks)];
        Paper { name: "demo", title: "A Paper Made Up", about: Vec::new(), sections }
    }

    fn run() -> Run {
        let failure = FailedPaper { name: "other".to_owned(), error: "no trace".to_owned() };
        Run {
            asked: "all".to_owned(),
            real: false,
            scale: PaperScale::Quick,
            seed: 7,
            papers: vec![paper()],
            failures: vec![failure],
        }
    }

    fn circumstances(date: &str) -> Circumstances {
        Circumstances {
            command: "gristmill lab paper all --quick".to_owned(),
            date: date.to_owned(),
            machine: "2 cores".to_owned(),
            seconds: vec![("demo".to_owned(), 1.25)],
        }
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_of_two_runs_differ_only_in_the_footer_and_in_run_json() {
        let (one, other) =
            (run().files(&circumstances("Monday")).unwrap(), run().files(&circumstances("Friday")).unwrap());
        assert_eq!(one.len(), other.len());
        for ((name, left), (_, right)) in one.iter().zip(&other) {
            let (left, right) = (String::from_utf8_lossy(left), String::from_utf8_lossy(right));
            let differing: Vec<(&str, &str)> =
                left.lines().zip(right.lines()).filter(|(left, right)| left != right).collect();
            match name.to_str().unwrap() {
                "index.html" => {
                    assert_eq!(differing.len(), 1);
                    assert!(differing[0].0.starts_with("<footer id=\"run\">"));
                }
                MARK => assert_eq!(differing.len(), 1),
                _ => assert_eq!(left, right, "{}", name.display()),
            }
        }
    }

    #[test]
    fn directory_holds_the_page_its_files_and_the_results() {
        let files = run().files(&circumstances("Monday")).unwrap();
        let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        for name in
            ["index.html", "demo/figure-5.svg", "demo/figure-5.csv", "demo/table-2.csv", "results.json", MARK]
        {
            assert!(names.contains(name), "{name} is missing in {names:?}");
        }
        let text = |wanted: &str| {
            let (_, content) = files.iter().find(|(name, _)| name == Path::new(wanted)).unwrap();
            String::from_utf8(content.clone()).unwrap()
        };
        assert!(text("index.html").contains("<code>other</code> is missing: no trace"));
        let results: serde_json::Value = serde_json::from_str(&text("results.json")).unwrap();
        assert_eq!((&results["seed"], &results["scale"]), (&7.into(), &"quick".into()));
        assert_eq!(results["tallies"][0][1]["reference"]["holds"], 1);
        assert_eq!(results["papers"][0]["sections"][0]["id"], "figure-5");
    }

    #[test]
    fn directory_appears_whole_and_leaves_nothing_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("deep/out");
        let directory = PaperDirectory::claim(&path, false).unwrap();
        assert!(!path.exists(), "nothing is there until all is");
        directory.write(&run().files(&circumstances("Monday")).unwrap()).unwrap();
        assert_eq!(names(&path), ["demo", "index.html", "results.json", MARK]);
        assert_eq!(names(path.parent().unwrap()), ["out"]);
        drop(PaperDirectory::claim(&root.path().join("never"), false).unwrap());
        assert_eq!(names(root.path()), ["deep"]);
    }

    #[test]
    fn directory_that_is_not_empty_is_replaced_only_if_asked_and_only_if_ours() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("out");
        fs::create_dir(&path).unwrap();
        drop(PaperDirectory::claim(&path, false).unwrap());
        fs::write(path.join("thesis.tex"), "years of work").unwrap();
        assert!(matches!(PaperDirectory::claim(&path, false), Err(PaperWriteError::NotEmpty { .. })));
        assert!(matches!(PaperDirectory::claim(&path, true), Err(PaperWriteError::NotOurs { .. })));
        fs::rename(path.join("thesis.tex"), path.join(MARK)).unwrap();
        assert!(matches!(PaperDirectory::claim(&path, false), Err(PaperWriteError::NotEmpty { .. })));
        PaperDirectory::claim(&path, true)
            .unwrap()
            .write(&[(PathBuf::from("a/b"), b"new".to_vec())])
            .unwrap();
        assert_eq!((names(&path), names(root.path())), (vec!["a".to_owned()], vec!["out".to_owned()]));
        fs::write(root.path().join("file"), "").unwrap();
        assert!(matches!(
            PaperDirectory::claim(&root.path().join("file"), true),
            Err(PaperWriteError::NotADirectory { .. })
        ));
    }

    #[test]
    fn what_comes_to_stand_there_during_the_run_is_not_touched() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("out");
        let directory = PaperDirectory::claim(&path, true).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("thesis.tex"), "years of work").unwrap();
        let error = directory.write(&[(PathBuf::from("a"), Vec::new())]).unwrap_err();
        assert!(matches!(error, PaperWriteError::NotOurs { .. }), "{error}");
        assert_eq!(
            (names(&path), names(root.path())),
            (vec!["thesis.tex".to_owned()], vec!["out".to_owned()])
        );
    }
}
