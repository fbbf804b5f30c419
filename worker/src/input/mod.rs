//! Input: from paths to blocks of whole records.
//!
//! Where a job is submitted, paths become files ([`list`]) and files become splits ([`plan`]). On a
//! worker, a map task reads its split block by block ([`open_split`]) through a [`FileAccess`] that
//! reaches the files.

pub mod bad_records;
mod blocks;
mod border;
mod compressed;
mod content;
mod error;
mod format;
mod limits;
pub mod list;
mod listed;
mod local;
mod lost_pages;
mod mapped;
mod maps;
mod path;
mod piece_form;
pub mod plan;
pub(crate) mod private;
pub mod record;
mod source;
mod split;
mod stored;
mod table;
mod tables;
#[cfg(test)]
mod tests;
pub mod wildcards;
mod window;

pub use bad_records::{BadRecord, BadRecords, FileBadRecords};
pub(crate) use blocks::KeptPart;
pub use blocks::{SplitBlocks, open_split};
pub use content::recognized_whole;
pub use error::InputError;
pub use format::RecordFormat;
pub use limits::InputLimits;
pub use list::Input;
pub use local::LocalFiles;
pub(crate) use local::open_mapped;
pub use mapped::{FilePlace, MappedFile};
pub use path::FilePath;
pub(crate) use private::open_regular;
pub use record::{Block, Blocks, Record, Records, Source};
pub use source::{ByteSource, FileAccess};
pub use split::{Compression, FileStamp, Piece, Place, Split};
pub use table::{Table, TableKind};
pub use tables::{OpenRows, check_tables, plug_in_tables};
pub use window::{Buffered, Fill, Window};
