//! Compares `secondary_sort` with a stable sort of each station's readings.

use crate::stage::{SHAPES, Stage, random, sorted_lines};
use rand::RngExt;
use std::collections::BTreeMap;
use std::fmt::Write;

const PROGRAM: &str = env!("CARGO_BIN_EXE_secondary_sort");

/// Station, second, degrees as text.
type Reading = (String, u64, String);

/// Returns readings in random order. Many share station and second, so that the order of the input matters.
fn readings(seed: u64) -> Vec<Reading> {
    let mut random = random(seed);
    let mut readings = Vec::new();
    for _ in 0..1500 {
        let station = ["Oslo", "Quito", "Nairobi", "Osl", "Ulan Bator"][random.random_range(0..5)];
        let tenths = random.random_range(-400..400);
        readings.push((
            station.to_owned(),
            random.random_range(0..500),
            (f64::from(tenths) / 10.0).to_string(),
        ));
    }
    readings
}

fn csv(readings: &[Reading]) -> String {
    readings.iter().fold(String::new(), |mut csv, (station, second, degrees)| {
        writeln!(csv, "{station},{second},{degrees}").unwrap();
        csv
    })
}

fn summaries(readings: Vec<Reading>) -> Vec<String> {
    let mut stations: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for (station, second, degrees) in readings {
        stations.entry(station).or_default().push((second, degrees));
    }
    let mut lines = Vec::new();
    for (station, mut readings) in stations {
        readings.sort_by_key(|(second, _)| *second);
        let silence = readings.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap_or(0);
        let ((first, first_degrees), (last, last_degrees)) = (&readings[0], &readings[readings.len() - 1]);
        let count = readings.len();
        lines
            .push(format!("{station}\t{count}\t{first}\t{first_degrees}\t{last}\t{last_degrees}\t{silence}"));
    }
    lines.sort_unstable();
    lines
}

#[test]
fn secondary_sort_summarises_readings_in_the_order_of_time_for_any_cluster() {
    let stage = Stage::new();
    let mut all = readings(5);
    // A station with a single reading has no silence.
    all.push(("Zermatt".to_owned(), 77, "-3.5".to_owned()));
    stage.write("early.csv", &csv(&all[..700]));
    stage.write("late.csv", &csv(&all[700..]));
    let expected = summaries(all);
    for shape in SHAPES {
        let output = format!("silence-{}-{}", shape.0, shape.1);
        stage.run(PROGRAM, shape, &format!("longest-silence early.csv late.csv --output {output}"));
        assert_eq!(sorted_lines(&stage.parts(&output)), expected, "{shape:?}");
    }
}

#[test]
fn secondary_sort_names_file_and_place_of_a_row_that_is_no_reading() {
    let stage = Stage::new();
    stage.write("bad.csv", "Oslo,1,2.5\nOslo,noon,2.5\n");
    let done = stage.command(PROGRAM, "run --workers 1 longest-silence bad.csv").output().unwrap();
    let words = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(4), "{words}");
    assert!(words.contains("bad.csv, byte 11: not a station, a second and degrees"), "{words}");
}
