//! Every effective setting of a topic, and where each comes from.

use crate::context::Context;
use danube_core::settings::{Explained, explain};
use danube_core::{Fault, TopicName};
use danube_wire::proto::control;

pub(super) async fn call(
    context: &Context,
    request: control::ExplainTopicRequest,
) -> Result<control::ExplainTopicResponse, Fault> {
    let name = TopicName::parse(&request.name)?;
    let view = context.meta.view();
    let partitions = super::partitions(context, &name)?;
    let first = partitions.first().and_then(|first| Some((first, view.topic(first)?)));
    let (first, topic) =
        first.ok_or_else(|| Fault::not_found(format!("topic `{name}` was deleted")))?;
    let found = explain(&view, first, topic, &context.defaults);
    Ok(control::ExplainTopicResponse {
        name: first.to_string(),
        partitions: if *first == name {
            0
        } else {
            u32::try_from(partitions.len()).unwrap_or(u32::MAX)
        },
        settings: found.settings.into_iter().map(setting).collect(),
        publish: found.publish,
        ack: found.ack,
        failures: found.failures.into_iter().map(|(name, says)| (name.to_string(), says)).collect(),
    })
}

pub(super) fn setting(found: Explained) -> control::ExplainedSetting {
    control::ExplainedSetting {
        subscription: found.subscription.map(|name| name.to_string()),
        name: found.name.to_owned(),
        value: found.value,
        unit: found.unit.to_owned(),
        origin: found.origin.as_str().to_owned(),
    }
}
