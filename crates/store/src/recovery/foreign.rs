//! A journal and a catalog that do not belong together.
//!
//! Law: what belongs to another catalog is refused before anything is changed.

use crate::checkpoint::{self, Checkpoint};
use crate::error::OpenError;
use crate::listing::Found;
use danube_core::Incarnation;
use std::path::Path;

/// A catalog that was lost and begun anew would count starts from 1 again, know no topic, and so
/// have all of them dropped.
pub(super) fn check_catalog(files: &[Found], ours: Incarnation) -> Result<(), OpenError> {
    let written = files.iter().filter_map(|file| file.header.map(|header| (file, header)));
    match written.max_by_key(|(_, header)| header.incarnation) {
        Some((file, header)) if header.incarnation >= ours.0 => Err(OpenError::OtherCatalog {
            path: file.path.clone(),
            theirs: header.incarnation,
            ours: ours.0,
        }),
        _ => Ok(()),
    }
}

/// The same by the checkpoint, for a directory whose journal is all in segments.
pub(super) fn check_checkpoint(
    checkpoint: Option<&Checkpoint>,
    ours: Incarnation,
    dir: &Path,
) -> Result<(), OpenError> {
    match checkpoint {
        Some(checkpoint) if checkpoint.incarnation >= ours.0 => Err(OpenError::OtherCatalog {
            path: checkpoint::path(dir, 0),
            theirs: checkpoint.incarnation,
            ours: ours.0,
        }),
        _ => Ok(()),
    }
}
