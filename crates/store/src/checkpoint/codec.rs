//! A checkpoint as bytes.
//!
//! Law: what is encoded decodes to the same; no bytes can make decoding panic, or take memory out
//! of proportion to them.

use super::{CHECKPOINT_VERSION, Checkpoint, TopicPoint};
use crate::input::Input;
use crate::segment::SegmentRef;
use crate::step;
use crate::topic::Tracked;
use danube_core::sequence::{Run, Sequences};
use danube_core::subscription::progress::{Progress, ProgressRecord};
use danube_core::{Offset, ProducerId, SubscriptionId, TopicId};
use std::collections::BTreeMap;

const HEADER_LEN: usize = 64;
const MAGIC: &[u8; 8] = b"DANUBECP";
const TAIL_LOST: u8 = 1;
const SYNCED_MODE: u8 = 2;
const DAMAGED: u8 = 4;
/// Stands for the journal file of a segment that has its messages itself.
const NO_JOURNAL: u64 = u64::MAX;
/// The version before segments could take journal files over. It is still read.
const WITHOUT_JOURNAL: u32 = 2;

/// Bytes of a checkpoint.
pub(crate) fn encode(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut out = vec![0; HEADER_LEN];
    for (id, point) in &checkpoint.topics {
        encode_topic(&mut out, *id, point);
    }
    let (body_len, body_crc) = (out.len() - HEADER_LEN, crc32c::crc32c(&out[HEADER_LEN..]));
    out[..8].copy_from_slice(MAGIC);
    out[12..16].copy_from_slice(&CHECKPOINT_VERSION.to_le_bytes());
    out[16..24].copy_from_slice(&checkpoint.id.to_le_bytes());
    out[24..32].copy_from_slice(&checkpoint.journal_from.to_le_bytes());
    out[32..40].copy_from_slice(&checkpoint.journal_lsn.to_le_bytes());
    out[40..44].copy_from_slice(&checkpoint.incarnation.to_le_bytes());
    out[44..48].copy_from_slice(&(checkpoint.topics.len() as u32).to_le_bytes());
    out[48..56].copy_from_slice(&(body_len as u64).to_le_bytes());
    out[56..60].copy_from_slice(&body_crc.to_le_bytes());
    let crc = crc32c::crc32c(&out[12..HEADER_LEN]);
    out[8..12].copy_from_slice(&crc.to_le_bytes());
    out
}

fn encode_topic(out: &mut Vec<u8>, id: TopicId, point: &TopicPoint) {
    let flags = [
        (point.tail_lost, TAIL_LOST),
        (point.synced_mode, SYNCED_MODE),
        (point.damage.is_some(), DAMAGED),
    ];
    let flags = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum();
    out.extend(id.0.to_le_bytes());
    out.extend(point.epoch.to_le_bytes());
    out.extend([point.settled, point.floor, point.time].map(u64::to_le_bytes).concat());
    out.push(flags);
    if let Some((file, position, what)) = &point.damage {
        text(out, file);
        out.extend(position.to_le_bytes());
        text(out, what);
    }
    out.extend((point.segments.len() as u32).to_le_bytes());
    for segment in &point.segments {
        let SegmentRef { base, end, generation, bytes, records, first_time, last_time, journal } =
            *segment;
        let journal = journal.unwrap_or(NO_JOURNAL);
        let numbers = [base, end, generation, bytes, records, first_time, last_time, journal];
        out.extend(numbers.map(u64::to_le_bytes).concat());
    }
    out.extend((point.progress.len() as u32).to_le_bytes());
    for (subscription, tracked) in &point.progress {
        let steps = tracked.progress.restate().into_iter();
        let steps: Vec<_> =
            steps.map(|step| ProgressRecord { subscription: *subscription, step }).collect();
        let payload = step::encode(&steps);
        out.extend(subscription.0.to_le_bytes());
        out.push(u8::from(tracked.anchored));
        out.extend((steps.len() as u32).to_le_bytes());
        out.extend((payload.len() as u32).to_le_bytes());
        out.extend(payload);
    }
    out.extend((point.sequences.len() as u32).to_le_bytes());
    for (producer, epoch, last, runs) in point.sequences.export() {
        let runs: Vec<Run> = runs.collect();
        let numbers = [producer.0, epoch.into(), last, runs.len() as u64];
        out.extend(numbers.map(u64::to_le_bytes).concat());
        for Run { first_sequence, first_offset, count } in runs {
            out.extend([first_sequence, first_offset.0, count].map(u64::to_le_bytes).concat());
        }
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Version and content of a checkpoint; no content when that does not hold or the version is not
/// ours, nothing at all when even the header does not hold.
pub(crate) fn decode(bytes: &[u8]) -> Option<(u32, Option<Checkpoint>)> {
    let (header, body) = bytes.split_at_checked(HEADER_LEN)?;
    let mut input = Input(header);
    let magic = input.take::<8>()?;
    let crc = input.u32()?;
    if magic != *MAGIC || crc != crc32c::crc32c(&header[12..]) {
        return None;
    }
    let version = input.u32()?;
    if !is_read(version) {
        return Some((version, None));
    }
    Some((version, decode_content(version, input, body)))
}

/// Whether a checkpoint of format `version` can be read.
pub(super) fn is_read(version: u32) -> bool {
    (WITHOUT_JOURNAL..=CHECKPOINT_VERSION).contains(&version)
}

fn decode_content(version: u32, mut header: Input<'_>, body: &[u8]) -> Option<Checkpoint> {
    let (id, journal_from, journal_lsn) = (header.u64()?, header.u64()?, header.u64()?);
    let (incarnation, count) = (header.u32()?, header.u32()?);
    let (body_len, body_crc) = (header.u64()?, header.u32()?);
    if body_len != body.len() as u64 || body_crc != crc32c::crc32c(body) {
        return None;
    }
    let mut input = Input(body);
    let mut topics = BTreeMap::new();
    for _ in 0..count {
        let (id, point) = decode_topic(version, &mut input)?;
        topics.insert(id, point);
    }
    let whole = input.0.is_empty() && topics.len() == count as usize;
    whole.then_some(Checkpoint { id, incarnation, journal_from, journal_lsn, topics })
}

fn decode_topic(version: u32, input: &mut Input<'_>) -> Option<(TopicId, TopicPoint)> {
    let (id, epoch) = (TopicId(input.u32()?), input.u32()?);
    let (settled, floor, time) = (input.u64()?, input.u64()?, input.u64()?);
    let flags = input.u8()?;
    let damaged = flags & DAMAGED != 0;
    let damage = if damaged { Some((input.text()?, input.u64()?, input.text()?)) } else { None };
    let mut segments = Vec::new();
    for _ in 0..input.u32()? {
        segments.push(SegmentRef {
            base: input.u64()?,
            end: input.u64()?,
            generation: input.u64()?,
            bytes: input.u64()?,
            records: input.u64()?,
            first_time: input.u64()?,
            last_time: input.u64()?,
            journal: match version {
                WITHOUT_JOURNAL => None,
                _ => Some(input.u64()?).filter(|it| *it != NO_JOURNAL),
            },
        });
    }
    let rises = segments.iter().all(|segment| segment.base < segment.end)
        && segments.is_sorted_by(|a, b| a.end <= b.base);
    let mut progress = BTreeMap::new();
    for _ in 0..input.u32()? {
        let (subscription, anchored) = (SubscriptionId(input.u32()?), input.flag()?);
        let (count, len) = (input.u32()?, input.u32()?);
        let records = step::decode(input.bytes(len as usize)?, count)?;
        let mut tracked = Tracked { progress: Progress::default(), anchored };
        records.iter().for_each(|record| tracked.progress.apply(&record.step));
        progress.insert(subscription, tracked);
    }
    let mut sequences = Sequences::default();
    for _ in 0..input.u32()? {
        let producer = ProducerId(input.u64()?);
        let (epoch, last) = (u32::try_from(input.u64()?).ok()?, input.u64()?);
        let mut runs = Vec::new();
        for _ in 0..input.u64()? {
            let (first_sequence, first_offset) = (input.u64()?, Offset(input.u64()?));
            runs.push(Run { first_sequence, first_offset, count: input.u64()? });
        }
        sequences.import(producer, epoch, last, runs);
    }
    let (tail_lost, synced_mode) = (flags & TAIL_LOST != 0, flags & SYNCED_MODE != 0);
    let point = TopicPoint {
        epoch,
        settled,
        floor,
        time,
        tail_lost,
        synced_mode,
        segments,
        progress,
        sequences,
        damage,
    };
    rises.then_some((id, point))
}
