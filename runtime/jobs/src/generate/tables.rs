//! Two tables with headers: `users.csv` (`user,name,country,joined`) and `visits.csv` (`visit,user,day,page,seconds`).
//! Visits choose their user by Zipf's law. One in 21 of the user numbers that visits draw from is not in users, and
//! rare users may have no visit. Every type of join therefore has rows to show.
//!
//! Quoted fields are not generated; tests of quoting write their own files.

use super::chunks::{ChunkStream, Draws};
use super::error::GenerateError;
use super::zipf::Zipf;
use std::io::Write;

const ROWS_PER_CHUNK: u64 = 16_384;
/// Bytes of both tables for each user, about 20 visits each, up to [`USERS_MAX`] users.
const BYTES_PER_USER: u64 = 1_000;
const USERS_MAX: u64 = 1_000_000;
/// Average size of a row, line break included; only the number of rows depends on it.
const USER_ROW_BYTES: u64 = 36;
const VISIT_ROW_BYTES: u64 = 42;
/// Prime and larger than any number of users: multiplying by it spreads the frequent users over the table.
const SCATTER: u64 = 2_147_483_647;

const COUNTRIES: [&str; 12] = ["AR", "BR", "DE", "EG", "ES", "FR", "GB", "IN", "JP", "KE", "NG", "US"];
const FIRST_NAMES: [&str; 16] = [
    "Ada",
    "Alan",
    "Barbara",
    "Dennis",
    "Donald",
    "Edsger",
    "Frances",
    "Grace",
    "Jean",
    "John",
    "Katherine",
    "Ken",
    "Leslie",
    "Mary",
    "Niklaus",
    "Radia",
];
const LAST_NAMES: [&str; 16] = [
    "Baker", "Carter", "Dyer", "Fisher", "Fletcher", "Glover", "Hooper", "Mason", "Miller", "Potter",
    "Sawyer", "Smith", "Tanner", "Thatcher", "Turner", "Weaver",
];

/// Number of rows of each table, and the distribution of users over visits.
pub(super) struct Tables {
    seed: u64,
    users: u64,
    visits: u64,
    visitors: Zipf,
}

impl Tables {
    pub(super) fn new(seed: u64, size: u64, exponent: f64) -> Result<Self, GenerateError> {
        let users = (size / BYTES_PER_USER).min(USERS_MAX);
        if users == 0 {
            return Err(GenerateError::Size { size, size_min: BYTES_PER_USER });
        }
        let visits = (size - users * USER_ROW_BYTES) / VISIT_ROW_BYTES;
        let visitors = (users + users.div_ceil(20)) as u32;
        Ok(Self { seed, users, visits, visitors: Zipf::new(visitors, exponent) })
    }

    pub(super) fn users_chunks(&self) -> u64 {
        self.users.div_ceil(ROWS_PER_CHUNK)
    }

    pub(super) fn visits_chunks(&self) -> u64 {
        self.visits.div_ceil(ROWS_PER_CHUNK)
    }

    pub(super) fn users(&self, chunk: u64) -> Vec<u8> {
        let mut draws = Draws::new(self.seed, ChunkStream::Users, chunk);
        rows(chunk, self.users, "user,name,country,joined", |user, out| {
            let first = FIRST_NAMES[draws.below(16) as usize];
            let last = LAST_NAMES[draws.below(16) as usize];
            let country = COUNTRIES[draws.below(12) as usize];
            let (year, month, day) = (2000 + draws.below(25), 1 + draws.below(12), 1 + draws.below(28));
            write!(out, "u{user:07},{first} {last},{country},{year}-{month:02}-{day:02}")
        })
    }

    pub(super) fn visits(&self, chunk: u64) -> Vec<u8> {
        let mut draws = Draws::new(self.seed, ChunkStream::Visits, chunk);
        let visitors = self.users + self.users.div_ceil(20);
        rows(chunk, self.visits, "visit,user,day,page,seconds", |visit, out| {
            let rank = u64::from(self.visitors.draw(&mut draws));
            let user = rank * SCATTER % visitors;
            let (month, day) = (1 + draws.below(12), 1 + draws.below(28));
            let (page, seconds) = (draws.below(1000), draws.below(3600));
            write!(out, "{visit},u{user:07},2025-{month:02}-{day:02},/page/{page},{seconds}")
        })
    }
}

/// One chunk of a table of `count` rows; the first one starts with the header.
fn rows(
    chunk: u64,
    count: u64,
    header: &str,
    mut row: impl FnMut(u64, &mut Vec<u8>) -> std::io::Result<()>,
) -> Vec<u8> {
    let mut out = Vec::new();
    if chunk == 0 {
        out.extend_from_slice(header.as_bytes());
        out.push(b'\n');
    }
    let first = chunk * ROWS_PER_CHUNK;
    for number in first..count.min(first + ROWS_PER_CHUNK) {
        row(number, &mut out).expect("writing to memory cannot fail");
        out.push(b'\n');
    }
    out
}
