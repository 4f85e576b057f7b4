//! What makes a topic what a manifest declares of it.

use super::Options;
use super::namespace::limits;
use super::planner::{Difference, Work};
use crate::catalog::{Catalog, TopicOverrides};
use crate::change::{AddPartitions, ConfigureTopic, ConfigureTopicSchema, CreateTopic, SetIntent};
use crate::fault::Fault;
use crate::intent::{Delivery, Intent, WalSyncMode};
use crate::name::TopicName;
use crate::schema::SubjectName;
use serde_json::Value;

pub(super) fn work(
    catalog: &Catalog,
    name: &TopicName,
    difference: &Difference<'_>,
    options: &Options,
) -> Result<Work, Fault> {
    let mut work = Work::default();
    check_dead_letters(catalog, difference)?;
    match &difference.live {
        None => work.changes.push(create(name, difference)?.into()),
        Some(_) => update(name, difference, options, &mut work)?,
    }
    configure(name, difference, &mut work)?;
    schema(name, difference, &options.by, &mut work)?;
    Ok(work)
}

fn check_dead_letters(catalog: &Catalog, difference: &Difference<'_>) -> Result<(), Fault> {
    match dead_letters(difference)? {
        Some(target)
            if !difference.declared.makes_dead_letters && catalog.topic(&target).is_none() =>
        {
            Err(Fault::precondition(format!(
                "its dead-letter topic `{target}` does not exist, and `create` is false; declare \
                 that topic too, or leave `create` out"
            )))
        }
        _ => Ok(()),
    }
}

/// Where its dead letters are to go from now on.
fn dead_letters(difference: &Difference<'_>) -> Result<Option<TopicName>, Fault> {
    text(difference.becomes("dlq.topic")).map(TopicName::parse).transpose()
}

pub(super) fn as_u32(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|value| u32::try_from(value).ok())
}

fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str)
}

fn create(name: &TopicName, difference: &Difference<'_>) -> Result<CreateTopic, Fault> {
    let declared = &difference.declared.fields;
    let intent = text(declared.get("intent")).map(Intent::parse).transpose()?;
    let delivery = text(declared.get("delivery")).map(Delivery::parse).transpose()?;
    let own = intent.map(|intent| intent.expand(name).delivery);
    let partitions = declared.get("partitions").and_then(as_u32);
    Ok(CreateTopic {
        name: name.clone(),
        partitions: partitions.filter(|count| *count > 0),
        intent,
        delivery: own.or(delivery).unwrap_or(Delivery::NonReliable),
        schema_subject: None,
        dead_letter_topic: dead_letters(difference)?,
        implicit: false,
    })
}

fn update(
    name: &TopicName,
    difference: &Difference<'_>,
    options: &Options,
    work: &mut Work,
) -> Result<(), Fault> {
    let live = |field| difference.live.as_ref().and_then(|live| text(live.get(field)));
    if let Some(new) = text(difference.becomes("delivery")) {
        return Err(Fault::precondition(format!(
            "delivery is {} and cannot become {new}; declare another topic, or give --replace {name} \
             to make it anew",
            live("delivery").unwrap_or("unknown")
        )));
    }
    if difference.has("intent") {
        match text(difference.becomes("intent")) {
            Some(intent) => {
                let intent = Intent::parse(intent)?;
                let (own, has) = (intent.expand(name).delivery, live("delivery"));
                if has.is_some_and(|has| has != own.as_str()) {
                    return Err(Fault::precondition(format!(
                        "delivery is {}, and intent `{intent}` means {}; declare another topic, or \
                         give --replace {name} to make it anew",
                        has.unwrap_or_default(),
                        own.as_str()
                    )));
                }
                work.changes.push(SetIntent { topic: name.clone(), intent }.into());
                if !options.update_subscriptions {
                    work.warnings.push(
                        "subscriptions that exist keep the failure policy that they have; \
                         --update-subscriptions gives them what the new intent says"
                            .to_owned(),
                    );
                }
            }
            None => work.warnings.push("the intent is no longer declared, and stays".to_owned()),
        }
    }
    if let Some(wanted) = difference.becomes("partitions").and_then(as_u32) {
        let live = difference.live.as_ref().and_then(|live| live.get("partitions"));
        let has = live.and_then(as_u32).unwrap_or(0);
        if has == 0 {
            return Err(Fault::precondition(format!(
                "it has no partitions and cannot get {wanted}; declare another topic, or give \
                 --replace {name} to make it anew"
            )));
        }
        if wanted < has {
            let wanted = if wanted == 0 { "none".to_owned() } else { wanted.to_string() };
            return Err(Fault::precondition(format!(
                "it has {has} partitions, and {wanted} are declared; removing some would lose \
                 messages, so declare `partitions: {has}`, or give --replace {name} to make it anew"
            )));
        }
        work.changes.push(AddPartitions { topic: name.clone(), partitions: wanted }.into());
        work.warnings.push(format!(
            "with {wanted} partitions instead of {has}, keys move between partitions"
        ));
    }
    Ok(())
}

fn configure(name: &TopicName, difference: &Difference<'_>, work: &mut Work) -> Result<(), Fault> {
    let (limits, cleared) = limits(difference);
    let mut set = TopicOverrides { limits, ..TopicOverrides::default() };
    let mut clear: Vec<String> = cleared.iter().map(|limit| limit.as_str().to_owned()).collect();
    let fields = [
        ("wal_sync", "wal_sync_mode"),
        ("retention.time_ms", "retention_time_ms"),
        ("retention.bytes", "retention_bytes"),
        ("dlq.topic", "dead_letter_topic"),
    ];
    for (field, setting) in fields {
        if difference.has(field) && difference.becomes(field).is_none() {
            clear.push(setting.to_owned());
        }
    }
    let sync = text(difference.becomes("wal_sync"));
    set.wal_sync_mode = sync.map(WalSyncMode::parse).transpose()?;
    set.retention_time_ms = difference.becomes("retention.time_ms").and_then(Value::as_u64);
    set.retention_bytes = difference.becomes("retention.bytes").and_then(Value::as_u64);
    if difference.live.is_some() {
        set.dead_letter_topic = dead_letters(difference)?;
    }
    for change in &difference.changes {
        let Some(label) = change.field.strip_prefix("labels.") else { continue };
        match text(change.new.as_ref()) {
            Some(value) => drop(set.labels.insert(label.to_owned(), value.to_owned())),
            None => clear.push(change.field.clone()),
        }
    }
    if !set.is_empty() || !clear.is_empty() {
        work.changes.push(ConfigureTopic { topic: name.clone(), set, clear }.into());
    }
    Ok(())
}

fn schema(
    name: &TopicName,
    difference: &Difference<'_>,
    by: &str,
    work: &mut Work,
) -> Result<(), Fault> {
    if !difference.has("schema.") {
        return Ok(());
    }
    let wanted = |field: &str| difference.wanted.get(&format!("schema.{field}"));
    let Some(subject) = text(wanted("subject")) else {
        work.warnings.push("the schema is no longer declared, and stays".to_owned());
        return Ok(());
    };
    let change = ConfigureTopicSchema {
        topic: name.clone(),
        subject: SubjectName::parse(subject)?,
        validation_policy: text(wanted("validation")).unwrap_or_default().parse()?,
        enable_payload_validation: wanted("payload_validation") == Some(&Value::Bool(true)),
        by: by.to_owned(),
    };
    work.changes.push(change.into());
    Ok(())
}
