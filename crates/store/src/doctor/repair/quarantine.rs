//! Files that a repair changes or takes away, as they were.
//!
//! Law: a file has its name here only once all of it is there and durable; nothing takes its place
//! but the file that it is a copy of, and it goes only if the repair that put it here failed.

use super::super::explain::QUARANTINE_DIR;
use super::Surgery;
use crate::disk::{Disk, read_available};
use crate::error::OpenError;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// Bytes copied at once.
const CHUNK: usize = 1 << 20;

impl Surgery<'_> {
    /// Where `path` goes in quarantine: under its name, or that with a number.
    fn place(&self, path: &Path) -> Result<PathBuf, OpenError> {
        let quarantine = self.dir.join(QUARANTINE_DIR);
        self.disk
            .make_dir(&quarantine)
            .and_then(|()| self.disk.sync_dir(self.dir))
            .map_err(|error| self.fail("make", &quarantine, &error))?;
        let taken = self.disk.list(&quarantine);
        let taken = taken.map_err(|error| self.fail("list", &quarantine, &error))?;
        let place = quarantine.join(path.file_name().unwrap_or_default());
        let numbered = (1..).map(|number: u32| place.with_added_extension(number.to_string()));
        let mut places = std::iter::once(place.clone()).chain(numbered);
        Ok(places.find(|place| !taken.contains(place)).expect("there is always another number"))
    }

    /// Copies a file into quarantine, once. Returns where it is there.
    pub(super) fn keep(&mut self, path: &Path) -> Result<PathBuf, OpenError> {
        if let Some(place) = self.kept.get(path) {
            return Ok(place.clone());
        }
        let place = self.place(path)?;
        // Half a copy must not look like the file.
        let temporary = place.with_added_extension("new");
        let _ = self.disk.remove(&temporary);
        let copied = copy(self.disk, path, &temporary)
            .and_then(|()| self.disk.rename(&temporary, &place))
            .inspect_err(|_| drop(self.disk.remove(&temporary)))
            .and_then(|()| self.disk.sync_dir(&self.dir.join(QUARANTINE_DIR)));
        copied.map_err(|error| self.fail("copy into quarantine", path, &error))?;
        self.kept.insert(path.to_path_buf(), place.clone());
        Ok(place)
    }

    /// Moves a file into quarantine, in the place of its copy if it has one there.
    pub(super) fn take_out(&mut self, path: &Path) -> Result<PathBuf, OpenError> {
        let place = match self.kept.get(path) {
            Some(place) => place.clone(),
            None => self.place(path)?,
        };
        let moved = self.disk.rename(path, &place).and_then(|()| {
            self.disk.sync_dir(&self.dir.join(QUARANTINE_DIR))?;
            self.disk.sync_dir(path.parent().unwrap_or(self.dir))
        });
        moved.map_err(|error| self.fail("move into quarantine", path, &error))?;
        Ok(place)
    }
}

fn copy(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (disk.open(from)?, disk.create(to)?);
    let (mut at, mut bytes) = (0, vec![0; CHUNK]);
    loop {
        let filled = read_available(&*from, at, &mut bytes)?;
        if filled == 0 {
            return to.sync_data();
        }
        to.write_at(at, &mut [IoSlice::new(&bytes[..filled])])?;
        at += filled as u64;
    }
}
