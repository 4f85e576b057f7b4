//! What becomes of journal files that segments take over, as far as the disk shows it: that histories
//! come to it, and not what is right.

use super::Counts;
use crate::sim::disk::SimDisk;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Format version of segments that took a journal file over.
const VERSION: u8 = 2;

/// Whether `path` is a journal file that segments have taken over.
pub fn is_taken(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "frames")
}

/// What there is at one moment.
pub struct Adopted {
    files: BTreeSet<PathBuf>,
    /// Segments, each as topic and first offset, and whether it took a journal file over.
    segments: BTreeSet<(String, String, bool)>,
}

impl Adopted {
    /// What there is now.
    pub fn look(disk: &SimDisk) -> Adopted {
        let names = disk.names();
        let segment = |path: &PathBuf| {
            let name = path.file_name()?.to_str()?.strip_suffix(".seg")?;
            let (topic, rest) = name.split_once('-')?;
            let bytes = disk.content(path)?;
            Some((topic.to_owned(), rest.to_owned(), bytes.get(12) == Some(&VERSION)))
        };
        let segments = names.iter().filter_map(segment).collect();
        Adopted { files: names.into_iter().filter(|path| is_taken(path)).collect(), segments }
    }

    /// Counts what happened since `before`, when `adopted` were taken over.
    pub fn count(&self, before: &Adopted, adopted: u64, counts: &mut Counts) {
        counts.adopted += adopted;
        let moved = self.files.difference(&before.files).count() as u64;
        counts.adopted_late += moved.saturating_sub(adopted);
        counts.adopted_gone += before.files.difference(&self.files).count() as u64;
        let gone = before.segments.difference(&self.segments).filter(|(.., taken)| *taken);
        for (topic, from, _) in gone {
            let mut later = before.segments.iter().filter(|it| it.0 == *topic && it.1 > *from);
            let to = later.next().map(|(_, to, _)| to);
            let again = self.segments.difference(&before.segments).any(|(whose, at, taken)| {
                // Names have the generation behind the offset, and later ones are higher.
                whose == topic && at > from && to.is_none_or(|to| at < to) && !taken
            });
            counts.adopted_rewritten += u64::from(again);
        }
    }
}
