//! What the loaded topics are told after the catalog has changed.
//!
//! Law: it is told from the outcome and the catalog alone, so that whoever made the change need not
//! know which topics are loaded.

use crate::context::Context;
use crate::topic::StopReason;
use danube_core::SubscriptionName;
use danube_core::catalog::{self, ObjectKey};
use danube_core::change::{Outcome, TopicRef};
use std::sync::Arc;

/// Tells the loaded topics what has become of `object`.
pub(super) async fn follow(context: &Arc<Context>, object: &ObjectKey, outcome: Outcome) {
    match (outcome, object) {
        (Outcome::TopicDeleted { deleted }, _) => {
            for topic in deleted {
                context.topics.stop(topic.id, StopReason::Deleted).await;
                context.topics.forget(topic.id);
                context.store.forget_topic(topic.id);
            }
        }
        (Outcome::SubscriptionDeleted { deleted }, ObjectKey::Subscription(_, name)) => {
            for (topic, _) in deleted {
                if let Ok(handle) = context.topics.get(context, &topic.name) {
                    handle.unsubscribed(name.clone()).await;
                }
            }
        }
        (Outcome::FailurePolicySet { topics }, ObjectKey::Subscription(_, name)) => {
            for topic in topics {
                policy_changed(context, &topic, name).await;
            }
        }
        (Outcome::DispatchConfigSet { topics }, ObjectKey::Subscription(_, name)) => {
            for topic in topics {
                window_changed(context, &topic, name).await;
            }
        }
        (Outcome::SubscriptionCreated { topics }, ObjectKey::Subscription(_, name)) => {
            for topic in topics {
                created(context, &topic, name).await;
            }
        }
        (Outcome::NamespacePoliciesSet | Outcome::TopicConfigured { .. }, _) => {
            refresh_settings(context).await;
        }
        (
            Outcome::TopicSchemaSet { .. }
            | Outcome::SchemaRegistered { .. }
            | Outcome::SchemaDeleted { .. }
            | Outcome::CompatibilitySet { .. },
            _,
        ) => crate::schema::refresh(context),
        // Nobody has loaded what is new, and nobody is told of what is told elsewhere.
        _ => {}
    }
}

fn record(
    context: &Context,
    topic: &TopicRef,
    subscription: &SubscriptionName,
) -> Option<catalog::Subscription> {
    let view = context.meta.view();
    view.topic(&topic.name)?.subscriptions.get(subscription).cloned()
}

async fn policy_changed(context: &Arc<Context>, topic: &TopicRef, name: &SubscriptionName) {
    // One that was set ahead waits in the catalog.
    let policy = record(context, topic, name).and_then(|known| known.failure_policy);
    if let (Some(policy), Ok(handle)) = (policy, context.topics.get(context, &topic.name)) {
        handle.policy_changed(name.clone(), policy).await;
    }
}

async fn window_changed(context: &Arc<Context>, topic: &TopicRef, name: &SubscriptionName) {
    let window = record(context, topic, name).and_then(|known| known.max_unacked_messages);
    if let (Some(window), Ok(handle)) = (window, context.topics.get(context, &topic.name)) {
        handle.window_changed(name.clone(), window).await;
    }
}

async fn created(context: &Arc<Context>, topic: &TopicRef, name: &SubscriptionName) {
    // A topic that is not loaded reads it when it is; the log must know at once whose messages to
    // keep, so it is loaded now.
    if let (Some(record), Ok(handle)) =
        (record(context, topic, name), context.topics.get(context, &topic.name))
    {
        handle.subscription_created(name.clone(), record).await;
    }
}

/// Brings the settings of all loaded topics up to the catalog. One whose messages are to be synced
/// otherwise is loaded anew; its clients come back by themselves.
async fn refresh_settings(context: &Arc<Context>) {
    let view = context.meta.view();
    for handle in context.topics.loaded() {
        let id = handle.identity().id;
        let Some((name, topic)) = view.topic_by_id(id) else { continue };
        let settings = context.settings(&view, name, topic);
        if settings.wal_sync_mode.value != handle.identity().wal_sync_mode {
            context.topics.stop(id, StopReason::Unloaded).await;
        } else {
            handle.settings_changed(settings).await;
        }
    }
}
