//! Walks an encoded message without building a value of it.
//!
//! Unknown fields are allowed, as everywhere in Protobuf. A known field with another wire type is a
//! fault: decoders would drop it silently, and what a producer meant would be lost.

use super::parse::is_message;
use super::{Field, Message, ProtobufSchema};
use crate::error::PayloadFault;
use crate::limits::PayloadLimits;
use prost_types::field_descriptor_proto::Type;
use std::collections::BTreeSet;

pub(super) fn validate(
    schema: &ProtobufSchema,
    payload: &[u8],
    limits: &PayloadLimits,
) -> Result<(), PayloadFault> {
    let mut walk =
        Walk { schema, rest: payload, work_left: limits.work_max, depth_left: limits.depth_max };
    let root = schema.messages.get(&schema.root).expect("the parser chose an existing message");
    walk.message(root, None)
        .map_err(|fault| fault.under(schema.root.rsplit('.').next().unwrap_or_default()))
}

struct Walk<'a> {
    schema: &'a ProtobufSchema,
    rest: &'a [u8],
    work_left: u64,
    depth_left: u32,
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const GROUP_START: u64 = 3;
const GROUP_END: u64 = 4;
const FIXED32: u64 = 5;

fn fault(why: impl Into<String>) -> PayloadFault {
    PayloadFault::new("", why)
}

impl<'a> Walk<'a> {
    /// Fields until the end, or until the end of group `ends_with`.
    fn message(&mut self, message: &Message, ends_with: Option<u64>) -> Result<(), PayloadFault> {
        self.depth_left = self
            .depth_left
            .checked_sub(1)
            .ok_or_else(|| fault("is nested deeper than the limit allows"))?;
        let mut required: BTreeSet<i32> = message
            .fields
            .iter()
            .filter(|(_, field)| field.required)
            .map(|(number, _)| *number)
            .collect();
        loop {
            if self.rest.is_empty() && ends_with.is_none() {
                break;
            }
            let (number, wire) = self.tag()?;
            if wire == GROUP_END {
                if ends_with == Some(number) {
                    break;
                }
                return Err(fault(format!("group {number} ends without a start")));
            }
            let field =
                i32::try_from(number).ok().and_then(|number| message.fields.get_key_value(&number));
            match field {
                Some((known, field)) => {
                    required.remove(known);
                    self.field(field, number, wire)
                        .map_err(|fault| fault.under(&field.name).under("."))?;
                }
                None => self.unknown(number, wire)?,
            }
        }
        self.depth_left += 1;
        match required.first().and_then(|number| message.fields.get(number)) {
            Some(field) => Err(fault(format!("required field `{}` is missing", field.name))),
            None => Ok(()),
        }
    }

    fn field(&mut self, field: &Field, number: u64, wire: u64) -> Result<(), PayloadFault> {
        let expected = wire_type(field.kind);
        if wire == expected {
            return self.value(field, number, wire);
        }
        // Both encodings of a list of scalars have to be read.
        if field.repeated && wire == LENGTH && matches!(expected, VARINT | FIXED32 | FIXED64) {
            let inner = self.length_delimited()?;
            let after = std::mem::replace(&mut self.rest, inner);
            while !self.rest.is_empty() {
                self.spend()?;
                self.value(field, number, expected)?;
            }
            self.rest = after;
            return Ok(());
        }
        Err(fault(format!(
            "has wire type {wire}, a {} has wire type {expected}",
            super::word(field.kind)
        )))
    }

    fn value(&mut self, field: &Field, number: u64, wire: u64) -> Result<(), PayloadFault> {
        match wire {
            VARINT => self.varint().map(drop),
            FIXED64 => self.take(8).map(drop),
            FIXED32 => self.take(4).map(drop),
            _ => match (field.kind, self.schema.messages.get(&field.type_name)) {
                (Type::Group, Some(message)) => self.message(message, Some(number)),
                (Type::Message, Some(message)) => {
                    let inner = self.length_delimited()?;
                    let after = std::mem::replace(&mut self.rest, inner);
                    self.message(message, None)?;
                    self.rest = after;
                    Ok(())
                }
                (Type::String, _) => match std::str::from_utf8(self.length_delimited()?) {
                    Ok(_) => Ok(()),
                    Err(_) => Err(fault("string is not UTF-8")),
                },
                _ => self.length_delimited().map(drop),
            },
        }
    }

    fn unknown(&mut self, number: u64, wire: u64) -> Result<(), PayloadFault> {
        match wire {
            VARINT => self.varint().map(drop),
            FIXED64 => self.take(8).map(drop),
            FIXED32 => self.take(4).map(drop),
            LENGTH => self.length_delimited().map(drop),
            GROUP_START => self.message(&Message::default(), Some(number)),
            _ => Err(fault(format!("field {number} has wire type {wire}, which does not exist"))),
        }
    }

    fn tag(&mut self) -> Result<(u64, u64), PayloadFault> {
        self.spend()?;
        let tag = self.varint()?;
        let (number, wire) = (tag >> 3, tag & 7);
        if number == 0 || tag > u64::from(u32::MAX) {
            return Err(fault(format!("field number `{number}` does not exist")));
        }
        Ok((number, wire))
    }

    fn spend(&mut self) -> Result<(), PayloadFault> {
        self.work_left = self
            .work_left
            .checked_sub(1)
            .ok_or_else(|| fault("takes more work to check than the limit allows"))?;
        Ok(())
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], PayloadFault> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(fault(format!(
                "needs {len} bytes, the payload has {} left",
                self.rest.len()
            )));
        };
        self.rest = rest;
        Ok(head)
    }

    fn length_delimited(&mut self) -> Result<&'a [u8], PayloadFault> {
        let len = self.varint()?;
        match usize::try_from(len) {
            Ok(len) => self.take(len),
            Err(_) => Err(fault(format!("length `{len}` is longer than the payload"))),
        }
    }

    fn varint(&mut self) -> Result<u64, PayloadFault> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(fault("variable-length number has more than 64 bits"))
    }
}

fn wire_type(kind: Type) -> u64 {
    match kind {
        Type::Double | Type::Fixed64 | Type::Sfixed64 => FIXED64,
        Type::Float | Type::Fixed32 | Type::Sfixed32 => FIXED32,
        Type::Group => GROUP_START,
        kind if is_message(kind) || matches!(kind, Type::String | Type::Bytes) => LENGTH,
        _ => VARINT,
    }
}
