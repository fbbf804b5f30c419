//! Worker side of Gristmill: the job API, records, map, combine, sort, spill, merge, HTTP shuffle, reduce, output, and
//! the worker process.
//!
//! Start with [`api`], which users implement; [`task`] runs one attempt, from start to end and blocking; [`shuffle`]
//! moves segments between workers; [`agent`] is the process around them. The bytes on disk and on the wire are
//! described in `FORMAT.md`.

pub mod agent;
pub mod api;
mod attempt;
pub mod budget;
pub mod codec;
pub mod collect;
pub mod commit;
pub mod control_group;
pub mod descriptors;
pub mod directory;
pub mod disk;
pub mod error_text;
pub mod exit;
pub mod fault;
pub mod http;
pub mod input;
pub mod key;
mod machine;
pub mod memory;
pub mod memory_watch;
pub mod merge;
pub mod narration;
pub mod objects;
pub mod output;
pub mod part_format;
pub mod prefetch;
pub mod prelude;
pub mod protocol;
pub(crate) mod recycle;
pub mod response;
pub mod sanitize;
pub mod segment;
pub mod settings;
pub mod shuffle;
pub mod signal;
pub mod streams;
pub mod task;
pub mod testing;
pub mod text;
pub mod threads;
pub mod value;
pub mod whole_file;

pub use input::record;
pub use machine::{boot_id, build_id, host_name, memory_bytes as machine_memory_bytes};
