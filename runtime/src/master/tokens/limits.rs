//! Version and limits of the file in the state directory that stores the generation of the tokens, the revoked names
//! and the quotas.

/// Version of the file.
pub(super) const SCHEMA: u32 = 1;

/// Number of names that can be revoked in one generation; more require the next one.
pub(super) const REVOKED_MAX: usize = 1000;
