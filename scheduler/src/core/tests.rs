//! What the core promises, rule by rule, and under random histories.

mod ahead;
mod commits;
mod driver;
mod ends;
mod failures;
mod outputs;
mod placing;
mod pools;
mod sharing;
mod sizes;
mod world;
