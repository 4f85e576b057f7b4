//! A JSON value as one binary datum, by the schema.
//!
//! JSON has fewer types than Avro. Bytes and fixed are texts of the characters U+0000 to U+00FF, as
//! in the specification; a value of a union may stand by itself, and is then of the first branch that
//! takes it, or name its branch as the specification has it: `{"string": "x"}`. Law: what is written
//! is a datum that [`AvroSchema::validate`] accepts.

use super::{AvroSchema, Kind, TypeId};
use crate::error::PayloadFault;
use crate::limits::PayloadLimits;
use serde_json::{Map, Value};

pub(super) fn encode(
    schema: &AvroSchema,
    value: &Value,
    limits: &PayloadLimits,
) -> Result<Vec<u8>, PayloadFault> {
    let mut writer = Writer {
        schema,
        out: Vec::new(),
        work_left: limits.work_max,
        depth_left: limits.depth_max,
    };
    writer.datum(schema.root, value)?;
    Ok(writer.out)
}

struct Writer<'a> {
    schema: &'a AvroSchema,
    out: Vec<u8>,
    /// Trying the branches of nested unions multiplies, so it is counted.
    work_left: u64,
    depth_left: u32,
}

type Written = Result<(), PayloadFault>;

impl Writer<'_> {
    fn datum(&mut self, of: TypeId, value: &Value) -> Written {
        self.work_left = self.work_left.checked_sub(1).ok_or_else(|| {
            PayloadFault::new("", "takes more work to encode than the limit allows")
        })?;
        let schema = self.schema;
        let wrong = || {
            let shown: String = value.to_string().chars().take(60).collect();
            PayloadFault::new("", format!("`{shown}` is not a value of type {}", schema.label(of)))
        };
        match &schema.type_of(of).kind {
            Kind::Null => value.is_null().then_some(()).ok_or_else(wrong)?,
            Kind::Boolean => self.out.push(u8::from(value.as_bool().ok_or_else(wrong)?)),
            Kind::Int => {
                let number = value.as_i64().filter(|number| i32::try_from(*number).is_ok());
                self.long(number.ok_or_else(wrong)?);
            }
            Kind::Long => self.long(value.as_i64().ok_or_else(wrong)?),
            Kind::Float => {
                let number = float(value).ok_or_else(wrong)?;
                #[expect(clippy::cast_possible_truncation, reason = "a float has the nearest")]
                self.out.extend((number as f32).to_le_bytes());
            }
            Kind::Double => self.out.extend(float(value).ok_or_else(wrong)?.to_le_bytes()),
            Kind::Bytes => {
                let bytes = value.as_str().and_then(latin).ok_or_else(wrong)?;
                self.bytes(&bytes);
            }
            Kind::String => self.bytes(value.as_str().ok_or_else(wrong)?.as_bytes()),
            Kind::Fixed { size, .. } => {
                let bytes = value.as_str().and_then(latin).filter(|bytes| bytes.len() == *size);
                self.out.extend(bytes.ok_or_else(wrong)?);
            }
            Kind::Enum { symbols, .. } => {
                let symbol = value.as_str().ok_or_else(wrong)?;
                let at = symbols.iter().position(|known| known == symbol).ok_or_else(wrong)?;
                self.len(at);
            }
            Kind::Union(branches) => self.union(branches, value).ok_or_else(wrong)?,
            Kind::Array(items) => self.array(*items, value.as_array().ok_or_else(wrong)?)?,
            Kind::Map(values) => self.map(*values, value.as_object().ok_or_else(wrong)?)?,
            Kind::Record { .. } => self.record(of, value.as_object().ok_or_else(wrong)?)?,
        }
        Ok(())
    }

    fn deeper(&mut self, of: TypeId, value: &Value) -> Written {
        let deeper = self.depth_left.checked_sub(1);
        self.depth_left = deeper
            .ok_or_else(|| PayloadFault::new("", "is nested deeper than the limit allows"))?;
        let done = self.datum(of, value);
        self.depth_left += 1;
        done
    }

    /// The named branch, or else the first that takes the value; `None` when none does.
    fn union(&mut self, branches: &[TypeId], value: &Value) -> Option<()> {
        let schema = self.schema;
        if let Some((name, inner)) = value.as_object().and_then(only) {
            let named = |branch: &&TypeId| schema.branch_name(**branch) == name;
            let at = branches.iter().position(|branch| named(&branch));
            if let Some(at) = at
                && self.branch(at, branches[at], inner)
            {
                return Some(());
            }
        }
        (0..branches.len()).find(|at| self.branch(*at, branches[*at], value)).map(|_| ())
    }

    /// Whether the branch took the value; if not, nothing is written.
    fn branch(&mut self, at: usize, of: TypeId, value: &Value) -> bool {
        let before = self.out.len();
        self.len(at);
        let taken = self.deeper(of, value).is_ok();
        if !taken {
            self.out.truncate(before);
        }
        taken
    }

    fn array(&mut self, items: TypeId, listed: &[Value]) -> Written {
        if !listed.is_empty() {
            self.len(listed.len());
            for (at, item) in listed.iter().enumerate() {
                self.deeper(items, item).map_err(|fault| fault.under(&format!("[{at}]")))?;
            }
        }
        self.out.push(0);
        Ok(())
    }

    fn map(&mut self, values: TypeId, entries: &Map<String, Value>) -> Written {
        if !entries.is_empty() {
            self.len(entries.len());
            for (key, value) in entries {
                self.bytes(key.as_bytes());
                self.deeper(values, value).map_err(|fault| fault.under(&format!("{{{key}}}")))?;
            }
        }
        self.out.push(0);
        Ok(())
    }

    fn record(&mut self, of: TypeId, entries: &Map<String, Value>) -> Written {
        let Kind::Record { name, fields } = &self.schema.type_of(of).kind else { return Ok(()) };
        let under = |field: &str, fault: PayloadFault| fault.under(field).under(".");
        let strange = entries.keys().find(|key| fields.iter().all(|field| field.name != **key));
        if let Some(strange) = strange {
            let why = format!("record {} has no field `{strange}`", name.full);
            return Err(PayloadFault::new("", why));
        }
        for field in fields {
            let value = entries.get(&field.name).or(field.default.as_ref());
            let value = value.ok_or_else(|| {
                under(&field.name, PayloadFault::new("", "is missing and has no default"))
            })?;
            self.deeper(field.of, value).map_err(|fault| under(&field.name, fault))?;
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.len(bytes.len());
        self.out.extend(bytes);
    }

    fn len(&mut self, len: usize) {
        self.long(i64::try_from(len).expect("nothing in memory is longer"));
    }

    /// Zigzag, seven bits to a byte, the lowest first.
    fn long(&mut self, number: i64) {
        let mut rest = (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned();
        while rest > 0x7F {
            #[expect(clippy::cast_possible_truncation, reason = "the lowest seven bits")]
            self.out.push((rest as u8 & 0x7F) | 0x80);
            rest >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most seven bits are left")]
        self.out.push(rest as u8);
    }
}

impl AvroSchema {
    /// What the specification's JSON calls a branch of a union.
    fn branch_name(&self, of: TypeId) -> &str {
        match &self.type_of(of).kind {
            Kind::Null => "null",
            Kind::Boolean => "boolean",
            Kind::Int => "int",
            Kind::Long => "long",
            Kind::Float => "float",
            Kind::Double => "double",
            Kind::Bytes => "bytes",
            Kind::String => "string",
            Kind::Array(_) => "array",
            Kind::Map(_) => "map",
            Kind::Union(_) => "union",
            Kind::Record { name, .. } | Kind::Enum { name, .. } | Kind::Fixed { name, .. } => {
                &name.full
            }
        }
    }
}

/// The only entry of an object that has one.
fn only(entries: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut each = entries.iter();
    let first = each.next()?;
    each.next().is_none().then_some((first.0.as_str(), first.1))
}

/// A number, or one of the three that JSON has no word for.
fn float(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity" | "INF") => Some(f64::INFINITY),
        Some("-Infinity" | "-INF") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => value.as_f64(),
    }
}

/// One byte for each character.
fn latin(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|char| u8::try_from(u32::from(char)).ok()).collect()
}
