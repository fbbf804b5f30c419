//! Tests of the guarantees of the core, rule by rule and under random histories.

mod ahead;
mod backups;
mod brains;
mod changing;
mod commits;
mod dividing;
mod driver;
mod ends;
mod explain;
mod failures;
mod outputs;
mod placing;
mod pools;
mod quotas;
mod random_history;
mod routes;
mod sharing;
mod sizes;
mod suspending;
