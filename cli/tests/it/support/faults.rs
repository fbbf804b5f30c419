//! Fault places: a worker that reaches one stops there, until the test kills it or lets it continue.

use super::sandbox::Sandbox;
use super::{process, until};
use std::fs;

impl Sandbox {
    /// Writes one token for a place: the next worker that reaches it takes the token and stops.
    pub fn arm(&self, place: &str) {
        fs::write(self.path(&format!("faults/{place}")), "").unwrap();
    }

    /// Writes one token for a place: the next worker that reaches it takes the token and panics, in the
    /// engine's own code.
    pub fn arm_panic(&self, place: &str) {
        fs::write(self.path(&format!("faults/{place}")), "panic").unwrap();
    }

    /// True if the token of a place has been taken.
    pub fn has_fired(&self, place: &str) -> bool {
        !self.path(&format!("faults/{place}")).exists()
    }

    /// Waits until a worker has stopped at a place; returns its process id.
    pub fn stopped_at(&self, place: &str) -> u32 {
        let hit = self.path(&format!("faults/{place}.hit"));
        until(&format!("a worker at {place}"), || fs::read_to_string(&hit).ok()).parse().unwrap()
    }

    /// Lets a worker that has stopped at a place continue. The place must have been reached exactly once.
    pub fn go_on(&self, place: &str) {
        fs::remove_file(self.path(&format!("faults/{place}.hit"))).unwrap();
        assert!(!self.path(&format!("faults/{place}")).exists(), "the token of {place} is still there");
    }

    /// Waits for a worker to stop at a place and kills it there; returns its process id.
    pub fn kill_at(&self, place: &str) -> u32 {
        let pid = self.stopped_at(place);
        process::kill(pid);
        self.go_on(place);
        pid
    }
}
