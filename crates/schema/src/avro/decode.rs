//! One binary datum as a JSON value, by the schema it was written with.
//!
//! A value of a union stands by itself, bytes and fixed are texts of the characters U+0000 to
//! U+00FF, and the floats that JSON cannot write are the texts `NaN`, `Infinity` and `-Infinity`.
//! Law: the value is at most in proportion to the payload's length.

use super::datum::Walk;
use super::{AvroSchema, Kind, TypeId, container};
use crate::error::PayloadFault;
use crate::limits::PayloadLimits;
use serde_json::{Map, Value};

/// Values that cost no bytes, as nulls in an array, beyond those that the payload pays for.
const FREE_VALUES_MAX: u64 = 100_000;

pub(super) fn decode(
    schema: &AvroSchema,
    payload: &[u8],
    limits: &PayloadLimits,
) -> Result<Value, PayloadFault> {
    let paid = FREE_VALUES_MAX.saturating_add(payload.len() as u64);
    let limits = PayloadLimits { work_max: limits.work_max.min(paid), ..*limits };
    let mut reader = Reader { walk: Walk::new(schema, payload, &limits), schema };
    let value = reader.datum(schema.root)?;
    match reader.walk.rest.len() {
        0 => Ok(value),
        _ if payload.starts_with(container::MAGIC) => {
            Err(PayloadFault::new("", "is an Avro container file, not a datum"))
        }
        left => Err(PayloadFault::new("", format!("{left} bytes are left over after the datum"))),
    }
}

struct Reader<'a> {
    walk: Walk<'a>,
    schema: &'a AvroSchema,
}

impl Reader<'_> {
    fn datum(&mut self, of: TypeId) -> Result<Value, PayloadFault> {
        self.walk.spend()?;
        let schema = self.schema;
        Ok(match &schema.type_of(of).kind {
            Kind::Null => Value::Null,
            Kind::Boolean => Value::Bool(self.walk.boolean()?),
            Kind::Int => self.walk.int()?.into(),
            Kind::Long => self.walk.long()?.into(),
            Kind::Float => {
                let bytes = self.walk.take(4)?.try_into().expect("four were taken");
                let number = f32::from_le_bytes(bytes);
                // By way of text, so that 0.1 does not become 0.10000000149011612.
                let shortest = number.to_string().parse().unwrap_or_else(|_| f64::from(number));
                float(shortest)
            }
            Kind::Double => {
                let bytes = self.walk.take(8)?.try_into().expect("eight were taken");
                float(f64::from_le_bytes(bytes))
            }
            Kind::Bytes => latin(self.walk.bytes()?),
            Kind::String => text(self.walk.bytes()?)?.into(),
            Kind::Fixed { size, .. } => latin(self.walk.take(*size)?),
            Kind::Enum { symbols, .. } => {
                let at = self.walk.int()?;
                let symbol = usize::try_from(at).ok().and_then(|at| symbols.get(at));
                let symbol = symbol.ok_or_else(|| {
                    let why = format!("enum index `{at}` is not below {}", symbols.len());
                    PayloadFault::new("", why)
                })?;
                symbol.as_str().into()
            }
            Kind::Union(branches) => {
                let at = self.walk.long()?;
                let branch = usize::try_from(at).ok().and_then(|at| branches.get(at));
                let branch = branch.ok_or_else(|| {
                    let why = format!("union index `{at}` is not below {}", branches.len());
                    PayloadFault::new("", why)
                })?;
                self.deeper(*branch)?
            }
            Kind::Array(items) => {
                let mut listed = Vec::new();
                self.blocks(|reader| {
                    listed.push(reader.deeper(*items).map_err(|fault| fault.under("[]"))?);
                    Ok(())
                })?;
                Value::Array(listed)
            }
            Kind::Map(values) => {
                let mut entries = Map::new();
                self.blocks(|reader| {
                    let key = text(reader.walk.bytes()?)?.to_owned();
                    entries.insert(key, reader.deeper(*values).map_err(|fault| fault.under("{}"))?);
                    Ok(())
                })?;
                Value::Object(entries)
            }
            Kind::Record { fields, .. } => {
                let mut entries = Map::new();
                for field in fields {
                    let value = self.deeper(field.of);
                    let value = value.map_err(|fault| fault.under(&field.name).under("."))?;
                    entries.insert(field.name.clone(), value);
                }
                Value::Object(entries)
            }
        })
    }

    fn deeper(&mut self, of: TypeId) -> Result<Value, PayloadFault> {
        self.walk.enter()?;
        let value = self.datum(of);
        self.walk.leave();
        value
    }

    /// Blocks of items until an empty one; the sizes that some blocks give are for those who skip.
    fn blocks(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), PayloadFault>,
    ) -> Result<(), PayloadFault> {
        loop {
            let count = self.walk.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                self.walk.long()?;
            }
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, PayloadFault> {
    std::str::from_utf8(bytes).map_err(|_| PayloadFault::new("", "string is not UTF-8"))
}

fn latin(bytes: &[u8]) -> Value {
    bytes.iter().copied().map(char::from).collect::<String>().into()
}

fn float(number: f64) -> Value {
    if number.is_nan() {
        return "NaN".into();
    }
    match serde_json::Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}
