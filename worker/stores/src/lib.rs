//! Object stores for Gristmill: S3, Google Cloud Storage, Azure Blob Storage and web servers as inputs and outputs.
//!
//! [`plug_in`] is all there is to call. All calls of a bucket block; what they wait for goes on on one thread of its own
//! (`io_thread`), so that a slow store holds up only its caller. Credentials come from the environment of the process
//! (`connect`), and stand in no URL, message or log.
//!
//! Not here: what of a store is input (`input` of the worker), how an output is claimed and finished (`output_dir` of the
//! runtime), and file systems.

mod bucket;
mod classes;
mod connect;
mod io_thread;
mod reader;
mod store;
mod upload;

/// Makes object stores inputs and outputs of this process.
pub fn plug_in() {
    gristmill_worker::objects::plug_in(bucket::open);
}
