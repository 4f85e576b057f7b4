//! The form of manifests as a JSON Schema, for editors.
//!
//! What an editor cannot know, such as whether a namespace exists, is told by the plan.

use crate::intent::INTENT_NAMES;
use crate::settings::{LIMITS, Limit};
use serde_json::{Map, Value, json};

/// The schema; `docs/manifest.schema.json` is this.
pub fn json_schema() -> Value {
    let policies = policies();
    let mut schema = object(
        "A manifest of danube: what `danube ctl apply` makes",
        json!({
            "apiVersion": {"const": "danube/v1"},
            "metadata": object("", json!({"owner": {
                "type": "string",
                "description": "Whose manifest it is: what the same owner declared before and declares no longer, --prune removes",
                "default": "apply",
            }}), &[]),
            "namespaces": {"type": "array", "items": {"anyOf": [
                {"type": "string"},
                object("", json!({"name": {"type": "string"}, "policies": policies}), &["name"]),
            ]}},
            "schemas": {"type": "array", "items": schema_entry()},
            "topics": {"type": "array", "items": topic(&policies)},
        }),
        &[],
    );
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Danube manifest".into();
    schema
}

fn object(description: &str, properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !description.is_empty() {
        schema["description"] = description.into();
    }
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

fn policies() -> Value {
    let limits: Map<String, Value> = LIMITS
        .iter()
        .map(|limit| {
            let least = u32::from(*limit == Limit::MaxMessageSize);
            let of = if limit.unit().is_empty() { "" } else { limit.unit() };
            let about = match least {
                0 => format!("{of}; 0 is no limit"),
                _ => of.to_owned(),
            };
            let about = about.trim_start_matches("; ").to_owned();
            let limit = limit.as_str().to_owned();
            (limit, json!({"type": "integer", "minimum": least, "description": about}))
        })
        .collect();
    object("Limits; what is left out is left to the layer below", limits.into(), &[])
}

fn schema_entry() -> Value {
    object(
        "A schema subject and its latest version",
        json!({
            "subject": {"type": "string"},
            "type": {"enum": ["avro", "json_schema", "protobuf", "string", "number", "bytes"]},
            "definition": {"type": "string", "description": "The definition itself"},
            "file": {"type": "string", "description": "A file with the definition, beside the manifest"},
            "compatibility": {"enum": ["none", "backward", "forward", "full"]},
            "description": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        }),
        &["subject", "type"],
    )
}

fn topic(policies: &Value) -> Value {
    let intents: Vec<&str> = INTENT_NAMES
        .iter()
        .flat_map(|(_, name, aliases)| std::iter::once(*name).chain(aliases.iter().copied()))
        .collect();
    object(
        "A topic, plain or partitioned",
        json!({
            "name": {"type": "string", "description": "/namespace/topic"},
            "intent": {"enum": intents, "description": "What it is for; everything else follows"},
            "delivery": {"enum": ["Reliable", "NonReliable"], "description": "Only without an intent"},
            "partitions": {"type": "integer", "minimum": 1, "maximum": crate::change::PARTITIONS_MAX,
                "description": "Left out: a topic without partitions. It can grow and never shrink"},
            "wal_sync": {"enum": ["async", "os_cache_flush", "fsync_batch"],
                "description": "What an acknowledged publish survives, instead of what the intent says"},
            "retention": object("", json!({
                "time": {"type": "string", "description": "7d, 12h, 30m, 45s, 500ms or forever"},
                "bytes": {"type": ["string", "integer"], "description": "10GiB, 500MB, bytes, or unlimited"},
            }), &[]),
            "dlq": {"anyOf": [
                {"type": "string", "description": "Where its dead letters go, instead of where the intent sends them"},
                object("", json!({
                    "topic": {"type": "string"},
                    "create": {"type": "boolean", "default": true,
                        "description": "Make it when it does not exist; false: it must be there"},
                }), &["topic"]),
            ]},
            "policies": policies,
            "labels": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
            "schema": object("", json!({
                "subject": {"type": "string"},
                "validation": {"enum": ["none", "warn", "enforce"]},
                "payload_validation": {"type": "boolean"},
            }), &["subject"]),
            "subscriptions": {"type": "array", "items": subscription()},
        }),
        &["name"],
    )
}

fn subscription() -> Value {
    object(
        "A subscription, made before its first consumer comes",
        json!({
            "name": {"type": "string"},
            "type": {"enum": ["exclusive", "shared", "failover", "key_shared"], "default": "shared"},
            "start": {"type": "string", "default": "latest",
                "description": "earliest, latest, offset:N or time:RFC3339; counts when it is made"},
            "failure_policy": object("What is left out is as the topic gives it", json!({
                "max_redelivery_count": count("Re-deliveries after the first delivery"),
                "ack_timeout_ms": count("How long a consumer may hold a message"),
                "base_redelivery_delay_ms": count("Delay before the first re-delivery"),
                "max_redelivery_delay_ms": count("Longest delay before a re-delivery"),
                "backoff_strategy": {"enum": ["fixed", "exponential"]},
                "poison_policy": {"enum": ["dead_letter", "block", "drop"]},
                "dead_letter_topic": {"type": "string"},
            }), &[]),
            "dispatch": object("", json!({
                "max_unacked_messages": {"type": "integer", "minimum": 1,
                    "maximum": crate::change::UNACKED_MESSAGES_MAX},
            }), &[]),
        }),
        &["name"],
    )
}
