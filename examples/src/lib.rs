//! Programs that a user of Gristmill would write, one file each under `src/bin`.
