//! Measurements of Gristmill.
