//! Walks an Avro object container file: header, the writer's schema in it, blocks.
//!
//! The file's own schema is what its data was written with, so the data is walked by that; that
//! schema has to resolve to the registered one, or readers of the subject could not use the data.

use super::datum::Walk;
use super::{AvroSchema, resolve};
use crate::error::PayloadFault;
use crate::limits::{DEFINITION_LEN_MAX, PayloadLimits};
use crate::references::NoReferences;
use crate::verdict::{Direction, Findings, Verdict};

pub(super) const MAGIC: &[u8] = b"Obj\x01";

pub(super) fn validate(
    registered: &AvroSchema,
    payload: &[u8],
    limits: &PayloadLimits,
) -> Result<(), PayloadFault> {
    let inside = |why: String| PayloadFault::new("", format!("Avro container file: {why}"));
    let mut walk = Walk::new(registered, &payload[MAGIC.len()..], limits);
    let header = Header::read(&mut walk)?;
    let writer = match header.schema {
        Some(text) if text.len() <= DEFINITION_LEN_MAX => {
            AvroSchema::parse(text, &NoReferences).map_err(|error| inside(error.to_string()))?
        }
        Some(_) => return Err(inside("its schema is too long".into())),
        None => return Err(inside("its header has no `avro.schema`".into())),
    };
    if writer.canonical() != registered.canonical() {
        let mut verdict = Verdict::default();
        resolve::resolve(
            registered,
            &writer,
            &mut Findings::new(0, Direction::NewReadsOld, &mut verdict, &mut 0),
        );
        if let Some(first) = verdict.breaks.first() {
            return Err(inside(format!(
                "its schema does not resolve to the registered one at `{}`: {}",
                first.path, first.why
            )));
        }
    }
    let sync = walk.take(16)?;
    let mut work_left = limits.work_max;
    let mut unpacked_left = limits.unpacked_len_max;
    while !walk.rest.is_empty() {
        let count = walk.long()?;
        let packed = walk.bytes()?;
        let unpacked;
        let data = match header.codec {
            b"" | b"null" => packed,
            b"deflate" => {
                unpacked =
                    miniz_oxide::inflate::decompress_to_vec_with_limit(packed, unpacked_left)
                        .map_err(|error| inside(format!("a block does not unpack: {error}")))?;
                &unpacked
            }
            other => {
                return Err(inside(format!(
                    "its codec is `{}`; use null or deflate on topics with payload validation",
                    String::from_utf8_lossy(&other[..other.len().min(32)])
                )));
            }
        };
        unpacked_left = unpacked_left.saturating_sub(data.len());
        work_left = block(&writer, count, data, &PayloadLimits { work_max: work_left, ..*limits })?;
        if walk.take(16)? != sync {
            return Err(inside("a block does not end with the file's sync marker".into()));
        }
    }
    Ok(())
}

/// The data of one block; gives what is left of the work that they may take together.
fn block(
    writer: &AvroSchema,
    count: i64,
    data: &[u8],
    limits: &PayloadLimits,
) -> Result<u64, PayloadFault> {
    let count =
        u64::try_from(count).ok().filter(|count| *count <= limits.work_max).ok_or_else(|| {
            PayloadFault::new("", format!("Avro container file: a block says it has {count} data"))
        })?;
    let mut inner = Walk::new(writer, data, limits);
    for _ in 0..count {
        inner.root()?;
    }
    match inner.rest.len() {
        0 => Ok(inner.work_left.saturating_sub(1)),
        left => Err(PayloadFault::new(
            "",
            format!("Avro container file: {left} bytes are left over in a block"),
        )),
    }
}

struct Header<'a> {
    schema: Option<&'a [u8]>,
    codec: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(walk: &mut Walk<'a>) -> Result<Header<'a>, PayloadFault> {
        let mut header = Header { schema: None, codec: b"" };
        loop {
            let mut count = walk.long()?;
            if count == 0 {
                return Ok(header);
            }
            if count < 0 {
                walk.long()?;
                count = count.saturating_neg();
            }
            for _ in 0..count {
                // Each entry has at least two bytes, so the payload's length bounds the loop.
                let key = walk.bytes()?;
                let value = walk.bytes()?;
                match key {
                    b"avro.schema" => header.schema = Some(value),
                    b"avro.codec" => header.codec = value,
                    _ => {}
                }
            }
        }
    }
}
