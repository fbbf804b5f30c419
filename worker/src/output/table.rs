//! Parts that hold columnar tables: conversion of lines to rows.
//!
//! A job writes lines as usual, and each becomes a row. The same lines produce the same file. Not here:
//! reading such files (`input::tables`).

#[cfg(feature = "tables")]
mod sink;

#[cfg(feature = "tables")]
pub(super) use sink::TableSink;

#[cfg(not(feature = "tables"))]
use super::layout::RowLayout;
#[cfg(not(feature = "tables"))]
use super::stored::Stored;
#[cfg(not(feature = "tables"))]
use crate::input::TableKind;
#[cfg(not(feature = "tables"))]
use std::io;

/// Writer of columnar tables, of which no value exists in a program built without it.
#[cfg(not(feature = "tables"))]
pub(super) struct TableSink(std::convert::Infallible);

#[cfg(not(feature = "tables"))]
impl TableSink {
    pub fn new(kind: TableKind, _: &RowLayout, _: Stored) -> io::Result<Self> {
        let why = format!("this program was built without writing {kind} files (the feature `tables`)");
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    pub fn stored(&self) -> (u64, u32) {
        match self.0 {}
    }

    pub fn write_all(&mut self, _: &[u8]) -> io::Result<()> {
        match self.0 {}
    }

    pub fn finish(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
