//! Make a topic, plain or partitioned, with or without an intent.

use crate::clock::Clock;
use crate::context::Context;
use crate::schema::Caller;
use danube_core::change::{Change, CreateTopic, Outcome};
use danube_core::{Delivery, Fault, Intent, TopicName};
use danube_wire::convert;
use danube_wire::proto::{control, danube_admin as proto};

pub(super) async fn plain(
    context: &Context,
    caller: Caller,
    request: proto::NewTopicRequest,
) -> Result<proto::TopicResponse, Fault> {
    let change = CreateTopic {
        name: TopicName::parse(&request.name)?,
        partitions: None,
        intent: None,
        delivery: convert::delivery(request.dispatch_strategy)?,
        schema_subject: request.schema_subject,
        dead_letter_topic: None,
        implicit: false,
    };
    create(context, &caller, change).await?;
    Ok(proto::TopicResponse { success: true })
}

pub(super) async fn partitioned(
    context: &Context,
    caller: Caller,
    request: proto::PartitionedTopicRequest,
) -> Result<proto::TopicResponse, Fault> {
    let change = CreateTopic {
        name: TopicName::parse(&request.base_name)?,
        partitions: Some(request.partitions),
        intent: None,
        delivery: convert::delivery(request.dispatch_strategy)?,
        schema_subject: request.schema_subject,
        dead_letter_topic: None,
        implicit: false,
    };
    create(context, &caller, change).await?;
    Ok(proto::TopicResponse { success: true })
}

pub(super) async fn with_intent(
    context: &Context,
    caller: Caller,
    request: control::CreateTopicRequest,
) -> Result<control::CreateTopicResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    let intent = request.intent.as_deref().map(Intent::parse).transpose()?;
    let asked = request.delivery.as_deref().map(convert::delivery_word).transpose()?;
    let own = intent.map(|intent| intent.expand(&name).delivery);
    if let (Some(intent), Some(own), Some(asked)) = (intent, own, asked)
        && own != asked
    {
        return Err(Fault::invalid(format!(
            "intent `{intent}` means delivery {}, but {} was asked for; leave one of them out",
            own.as_str(),
            asked.as_str()
        )));
    }
    let change = CreateTopic {
        name,
        partitions: request.partitions,
        intent,
        delivery: own.or(asked).unwrap_or(Delivery::NonReliable),
        schema_subject: request.schema_subject,
        dead_letter_topic: None,
        implicit: false,
    };
    let topics = create(context, &caller, change).await?;
    Ok(control::CreateTopicResponse { topics })
}

/// Proposes the topic; answers everything that was made.
async fn create(
    context: &Context,
    caller: &Caller,
    change: CreateTopic,
) -> Result<Vec<String>, Fault> {
    if let Some(subject) = change.schema_subject.as_deref()
        && context.meta.view().subject(subject).is_none()
    {
        return Err(Fault::not_found(format!(
            "topic `{}` cannot be created: schema subject `{}` not found; register a version of it \
             first",
            change.name,
            subject.escape_debug()
        )));
    }
    let change = Change::CreateTopic(change);
    let outcome = context.meta.propose_by(change, Clock::wall(), caller.by("")).await?;
    let Outcome::TopicCreated { created, dead_letter } = outcome else { return Ok(Vec::new()) };
    let made: Vec<String> =
        created.iter().chain(&dead_letter).map(|topic| topic.name.to_string()).collect();
    tracing::info!(topics = ?made, "created");
    Ok(made)
}
