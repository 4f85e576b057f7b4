//! The thread that reads from the disk what memory no longer has.
//!
//! Law: no byte leaves here unless its frame's checksums hold and it is the frame the index
//! meant. What does not hold stops the topic.

use crate::disk::DiskFile;
use crate::error::{Damage, ReadError};
use crate::frame::{FRAME_HEADER_LEN, FrameHeader, FrameKind, split_messages};
use crate::shared::{Read, Shared, answer};
use crate::topic::{Batch, Topic};
use crate::topic_log::{ReadBatch, ReadLimit};
use bytes::Bytes;
use danube_core::Offset;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Most files kept open between reads.
const OPEN_MAX: usize = 16;

/// State of the reader thread.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    /// Files used last, the latest at the back.
    open: VecDeque<(u64, Arc<dyn DiskFile>)>,
}

enum Failure {
    Io(io::Error),
    Damaged(&'static str),
}

impl Reader {
    /// A reader with no file open.
    pub(crate) fn new(shared: Arc<Shared>) -> Reader {
        Reader { shared, open: VecDeque::new() }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        while let Some(reads) = self.shared.reads.drain(usize::MAX) {
            for Read { topic, from, limit, done } in reads {
                let outcome = self.read(&topic, from, limit);
                answer(Some(done), outcome);
            }
        }
    }

    fn read(&mut self, topic: &Topic, from: u64, limit: ReadLimit) -> Result<ReadBatch, ReadError> {
        let plan = {
            let state = topic.state.lock();
            if state.forgotten {
                return Err(ReadError::Forgotten(topic.id));
            }
            if let Some(damage) = &state.damage {
                return Err(ReadError::Damaged(damage.clone()));
            }
            state.plan_read(from, limit)
        };
        let mut answer = ReadBatch::begin(from);
        for batch in plan {
            match self.batch(topic, &batch) {
                Ok(records) => {
                    if !answer.take(batch.first, &records, limit) {
                        break;
                    }
                }
                // What was read is good; the next read meets the failure first.
                Err(_) if !answer.records.is_empty() => break,
                Err(failure) => return Err(self.explain(topic, &batch, failure)),
            }
        }
        Ok(answer)
    }

    fn batch(&mut self, topic: &Topic, batch: &Batch) -> Result<Vec<Bytes>, Failure> {
        let file = self.file(batch.file).map_err(Failure::Io)?;
        let mut frame = vec![0; FRAME_HEADER_LEN + batch.payload_len as usize];
        let filled = file.read_at(batch.position, &mut frame).map_err(Failure::Io)?;
        if filled < frame.len() {
            return Err(Failure::Damaged("the file ends within a frame"));
        }
        let header = frame
            .first_chunk()
            .and_then(|bytes| FrameHeader::decode(bytes, batch.file))
            .ok_or(Failure::Damaged("a frame's header does not hold"))?;
        let meant = header.kind == FrameKind::Messages
            && (header.topic, header.first, header.count) == (topic.id.0, batch.first, batch.count);
        if !meant {
            return Err(Failure::Damaged("another frame than the one written"));
        }
        let payload = Bytes::from(frame).split_off(FRAME_HEADER_LEN);
        if !header.holds(&payload) {
            return Err(Failure::Damaged("a frame's payload does not match its checksum"));
        }
        split_messages(payload, header.count)
            .ok_or(Failure::Damaged("a frame's records do not fit"))
    }

    fn file(&mut self, sequence: u64) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(at) = self.open.iter().position(|(open, _)| *open == sequence) {
            let entry = self.open.remove(at).expect("found just now");
            self.open.push_back(entry);
        } else {
            let file = self.shared.disk.open(&self.shared.path(sequence))?;
            if self.open.len() >= OPEN_MAX {
                self.open.pop_front();
            }
            self.open.push_back((sequence, file));
        }
        Ok(Arc::clone(&self.open.back().expect("pushed just now").1))
    }

    fn explain(&self, topic: &Topic, batch: &Batch, failure: Failure) -> ReadError {
        let path = self.shared.path(batch.file);
        let mut state = topic.state.lock();
        if state.forgotten {
            return ReadError::Forgotten(topic.id);
        }
        match failure {
            Failure::Io(error) => ReadError::Io {
                topic: topic.id,
                offset: Offset(batch.first),
                path,
                error: error.to_string(),
            },
            Failure::Damaged(what) => {
                let what = format!("{what}, offset {}", batch.first);
                let damage = Damage { topic: topic.id, file: path, position: batch.position, what };
                tracing::error!(%damage, "damage found in the journal");
                state.damage = Some(damage.clone());
                ReadError::Damaged(damage)
            }
        }
    }
}
