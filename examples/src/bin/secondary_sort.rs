//! Secondary sort: for each station its first and last reading and the longest silence between two.
//!
//! The key is (station, second), so the pairs are sorted by time within each station. `group_by_first`
//! passes a whole station to the reducer at once. It reads one reading after another and keeps two of
//! them, independent of their number. Not here: an average, for which any order would do.

use gristmill::prelude::*;

/// Find each station's first and last reading and its longest silence
#[derive(clap::Args, Serialize, Deserialize)]
struct LongestSilence {
    /// CSV files without a header: station, second, degrees
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<String>,
}

impl Job for LongestSilence {
    const NAME: &'static str = "longest-silence";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let input = Input::csv(&self.inputs, b',', false);
        Ok(JobPlan::map(input, || ParseReading).group_by_first().reduce(|| Summarise))
    }

    fn columns(&self) -> Option<Vec<String>> {
        let names = ["station", "readings", "first", "first_degrees", "last", "last_degrees", "silence"];
        Some(names.map(str::to_owned).to_vec())
    }
}

/// Key sorted by both components. Two readings of one second stay in the order of the input.
type StationSecond = (String, u64);

struct ParseReading;

impl Mapper for ParseReading {
    type Key = StationSecond;
    type Value = f64;

    fn map(&mut self, row: Record<'_>, out: &mut Emitter<StationSecond, f64>) -> TaskResult {
        let (station, second, degrees) = parse(&row).ok_or_else(|| {
            // An input error is not retried: a second attempt would find the same row.
            let (path, offset) = (&row.source().path, row.offset());
            TaskError::input(format!("{path}, byte {offset}: not a station, a second and degrees"))
        })?;
        out.emit((station, second), degrees);
        Ok(())
    }
}

fn parse(row: &[u8]) -> Option<(String, u64, f64)> {
    let mut fields = text::csv_fields(row, b',');
    let (station, second, degrees) = (fields.next()?, fields.next()?, fields.next()?);
    let degrees = std::str::from_utf8(&degrees).ok()?.parse().ok()?;
    Some((String::from_utf8(station.into_owned()).ok()?, text::parse_u64(&second)?, degrees))
}

struct Summarise;

impl Reducer for Summarise {
    type Key = StationSecond;
    type Value = f64;

    /// The key is that of the first reading; `readings.key()` is that of the one read last.
    fn reduce(
        &mut self,
        (station, first): StationSecond,
        readings: &mut Values<'_, StationSecond, f64>,
        out: &mut Output,
    ) -> TaskResult {
        let Some(first_degrees) = readings.next()? else { return Ok(()) };
        let (mut count, mut last, mut last_degrees, mut silence) = (1_u64, first, first_degrees, 0);
        while let Some(degrees) = readings.next()? {
            let (_, second) = readings.key()?;
            silence = silence.max(second - last);
            (count, last, last_degrees) = (count + 1, second, degrees);
        }
        let summary = format_args!("{count}\t{first}\t{first_degrees}\t{last}\t{last_degrees}\t{silence}");
        out.pair(station, summary);
        Ok(())
    }

    fn groups_are_independent(&self) -> bool {
        true
    }
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::new().job::<LongestSilence>())
}
