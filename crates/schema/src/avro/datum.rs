//! Walks one binary datum without building a value of it.

use super::{AvroSchema, Kind, TypeId};
use crate::error::PayloadFault;
use crate::limits::PayloadLimits;

/// The whole payload is one datum of the root type.
pub(super) fn validate(
    schema: &AvroSchema,
    payload: &[u8],
    limits: &PayloadLimits,
) -> Result<(), PayloadFault> {
    let mut walk = Walk::new(schema, payload, limits);
    walk.root()?;
    match walk.rest.len() {
        0 => Ok(()),
        left => Err(PayloadFault::new("", format!("{left} bytes are left over after the datum"))),
    }
}

/// A position in the payload and what may still be spent.
pub(super) struct Walk<'a> {
    schema: &'a AvroSchema,
    pub(super) rest: &'a [u8],
    pub(super) work_left: u64,
    depth_left: u32,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        schema: &'a AvroSchema,
        payload: &'a [u8],
        limits: &PayloadLimits,
    ) -> Walk<'a> {
        Walk { schema, rest: payload, work_left: limits.work_max, depth_left: limits.depth_max }
    }

    /// One datum of the root type.
    pub(super) fn root(&mut self) -> Result<(), PayloadFault> {
        self.datum(self.schema.root).map_err(|fault| {
            match &self.schema.type_of(self.schema.root).kind {
                Kind::Record { name, .. } => fault.under(name.simple()),
                _ => fault,
            }
        })
    }

    fn datum(&mut self, of: TypeId) -> Result<(), PayloadFault> {
        self.spend()?;
        match &self.schema.type_of(of).kind {
            Kind::Null => Ok(()),
            Kind::Boolean => self.boolean().map(drop),
            Kind::Int => self.int().map(drop),
            Kind::Long => self.long().map(drop),
            Kind::Float => self.take(4).map(drop),
            Kind::Double => self.take(8).map(drop),
            Kind::Bytes => self.bytes().map(drop),
            Kind::String => {
                let text = self.bytes()?;
                std::str::from_utf8(text)
                    .map(drop)
                    .map_err(|_| PayloadFault::new("", "string is not UTF-8"))
            }
            Kind::Fixed { size, .. } => self.take(*size).map(drop),
            Kind::Enum { symbols, .. } => {
                let at = self.int()?;
                match usize::try_from(at) {
                    Ok(at) if at < symbols.len() => Ok(()),
                    _ => Err(PayloadFault::new(
                        "",
                        format!("enum index `{at}` is not below {}", symbols.len()),
                    )),
                }
            }
            Kind::Union(branches) => {
                let at = self.long()?;
                match usize::try_from(at).ok().and_then(|at| branches.get(at)) {
                    Some(branch) => self.deeper(*branch),
                    None => Err(PayloadFault::new(
                        "",
                        format!("union index `{at}` is not below {}", branches.len()),
                    )),
                }
            }
            Kind::Array(items) => {
                self.blocks(|walk| walk.deeper(*items).map_err(|fault| fault.under("[]")))
            }
            Kind::Map(values) => self.blocks(|walk| {
                let key = walk.bytes()?;
                if std::str::from_utf8(key).is_err() {
                    return Err(PayloadFault::new("{}", "map key is not UTF-8"));
                }
                walk.deeper(*values).map_err(|fault| fault.under("{}"))
            }),
            Kind::Record { fields, .. } => {
                for field in fields {
                    self.deeper(field.of).map_err(|fault| fault.under(&field.name).under("."))?;
                }
                Ok(())
            }
        }
    }

    fn deeper(&mut self, of: TypeId) -> Result<(), PayloadFault> {
        self.enter()?;
        let done = self.datum(of);
        self.leave();
        done
    }

    /// Pays for one value.
    pub(super) fn spend(&mut self) -> Result<(), PayloadFault> {
        self.work_left = self.work_left.checked_sub(1).ok_or_else(|| {
            PayloadFault::new("", "takes more work to check than the limit allows")
        })?;
        Ok(())
    }

    /// One level deeper, until [`Walk::leave`].
    pub(super) fn enter(&mut self) -> Result<(), PayloadFault> {
        self.depth_left = self
            .depth_left
            .checked_sub(1)
            .ok_or_else(|| PayloadFault::new("", "is nested deeper than the limit allows"))?;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth_left += 1;
    }

    pub(super) fn boolean(&mut self) -> Result<bool, PayloadFault> {
        match self.take(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(PayloadFault::new("", format!("boolean is `{byte}`, not 0 or 1"))),
        }
    }

    /// Blocks of items until an empty one. Items without bytes are paid for by the work limit.
    fn blocks(
        &mut self,
        mut item: impl FnMut(&mut Walk<'a>) -> Result<(), PayloadFault>,
    ) -> Result<(), PayloadFault> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            let mut block_end = None;
            if count < 0 {
                let size = self.long()?;
                let size = usize::try_from(size).ok().filter(|size| *size <= self.rest.len());
                let Some(size) = size else {
                    return Err(PayloadFault::new("", "block is longer than the payload"));
                };
                block_end = Some(self.rest.len() - size);
            }
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
            if block_end.is_some_and(|end| end != self.rest.len()) {
                return Err(PayloadFault::new("", "block does not have the size that it says"));
            }
        }
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], PayloadFault> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(PayloadFault::new(
                "",
                format!("needs {len} bytes, the payload has {} left", self.rest.len()),
            ));
        };
        self.rest = rest;
        Ok(head)
    }

    /// Bytes with their length before them.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], PayloadFault> {
        let len = self.long()?;
        let len = usize::try_from(len)
            .map_err(|_| PayloadFault::new("", format!("length `{len}` is negative")))?;
        self.take(len)
    }

    pub(super) fn int(&mut self) -> Result<i32, PayloadFault> {
        let number = self.long()?;
        i32::try_from(number)
            .map_err(|_| PayloadFault::new("", format!("int `{number}` has more than 32 bits")))
    }

    pub(super) fn long(&mut self) -> Result<i64, PayloadFault> {
        let mut raw = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            if shift == 63 && byte > 1 {
                break;
            }
            raw |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed());
            }
        }
        Err(PayloadFault::new("", "variable-length number has more than 64 bits"))
    }
}
