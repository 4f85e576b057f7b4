//! Spans for messages that belong to a recorded trace: one for the publish, one for each delivery
//! up to what becomes of it.
//!
//! A message belongs to a trace when its attributes say so (W3C `traceparent`). What is left to
//! others: where spans go, and whether there are any (the binary hands in a tracer or none).
//!
//! Law: without a tracer nothing here costs more than a look whether there is one, and a message
//! without a recorded `traceparent` never gets a span.

use crate::clock::Clock;
use crate::topic::TopicIdentity;
use danube_core::{FaultKind, Offset, SubscriptionName};
use danube_wire::record::Record;
use danube_wire::trace_context::{TRACEPARENT, TRACESTATE, TraceParent};
use opentelemetry::global::{BoxedSpan, BoxedTracer};
use opentelemetry::trace::{
    Span, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer,
};
use opentelemetry::{Context, KeyValue};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Where spans are made, if anywhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traces(Option<Arc<BoxedTracer>>);

/// What a message says of its trace, which is recorded.
#[derive(Debug, Clone)]
pub(crate) struct Parent(SpanContext);

impl Parent {
    /// Reads the two attributes; `None` when they name no recorded trace.
    pub(crate) fn read(traceparent: &str, tracestate: Option<&str>) -> Option<Parent> {
        let parent = TraceParent::parse(traceparent).filter(TraceParent::is_sampled)?;
        // A state that cannot be read is left out, as the recommendation wants it.
        let state = tracestate.and_then(|text| text.parse::<TraceState>().ok());
        Some(Parent(SpanContext::new(
            TraceId::from_bytes(parent.trace_id),
            SpanId::from_bytes(parent.span_id),
            TraceFlags::new(parent.flags),
            true,
            state.unwrap_or_default(),
        )))
    }

    fn of(record: &Record) -> Option<Parent> {
        Parent::read(record.attribute(TRACEPARENT)?, record.attribute(TRACESTATE))
    }
}

impl Traces {
    pub(crate) fn new(tracer: Option<Arc<BoxedTracer>>) -> Traces {
        Traces(tracer)
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    fn span(
        tracer: &BoxedTracer,
        (verb, kind): (&'static str, SpanKind),
        topic: &TopicIdentity,
        parent: &Parent,
        start: SystemTime,
    ) -> BoxedSpan {
        let attributes = vec![
            KeyValue::new("messaging.system", "danube"),
            KeyValue::new("messaging.operation.name", verb),
            KeyValue::new("messaging.destination.name", topic.name.to_string()),
        ];
        let builder = tracer
            .span_builder(format!("{verb} {}", topic.name))
            .with_kind(kind)
            .with_start_time(start)
            .with_attributes(attributes);
        let parent = Context::new().with_remote_span_context(parent.0.clone());
        builder.start_with_context(tracer, &parent)
    }

    /// A publish that came to its end just now, after `took`.
    pub(crate) fn published(
        &self,
        topic: &TopicIdentity,
        parent: &Parent,
        took: Duration,
        result: Result<Offset, FaultKind>,
    ) {
        let Some(tracer) = &self.0 else { return };
        let end = Clock::system();
        let start = end.checked_sub(took).unwrap_or(end);
        let mut span = Traces::span(tracer, ("publish", SpanKind::Server), topic, parent, start);
        match result {
            Ok(offset) => span.set_attribute(offset_of(offset)),
            Err(kind) => span.set_status(Status::error(format!("{kind:?}"))),
        }
        span.end_with_timestamp(end);
    }

    /// For the deliveries of one subscription.
    pub(crate) fn deliveries(&self) -> Deliveries {
        Deliveries { traces: self.clone(), open: BTreeMap::new() }
    }
}

/// An offset as back ends show numbers.
fn offset_of(offset: Offset) -> KeyValue {
    KeyValue::new("messaging.danube.message.offset", i64::try_from(offset.0).unwrap_or(i64::MAX))
}

/// The spans of messages that one subscription has out: at most as many as its window is wide.
#[derive(Debug)]
pub(crate) struct Deliveries {
    traces: Traces,
    open: BTreeMap<Offset, BoxedSpan>,
}

impl Deliveries {
    /// A message is handed to a connection.
    pub(crate) fn begin(
        &mut self,
        topic: &TopicIdentity,
        subscription: &SubscriptionName,
        (offset, attempt): (Offset, u32),
        record: &Record,
    ) {
        let Some(tracer) = &self.traces.0 else { return };
        let Some(parent) = Parent::of(record) else { return };
        let verb = ("deliver", SpanKind::Producer);
        let mut span = Traces::span(tracer, verb, topic, &parent, Clock::system());
        span.set_attribute(KeyValue::new(
            "messaging.destination.subscription.name",
            subscription.to_string(),
        ));
        span.set_attribute(offset_of(offset));
        span.set_attribute(KeyValue::new("messaging.danube.delivery.attempt", i64::from(attempt)));
        // One that was given back without a word goes out again.
        self.end(offset, "given back");
        self.open.insert(offset, span);
    }

    /// Says what became of a delivery, if it has a span.
    pub(crate) fn end(&mut self, offset: Offset, outcome: &'static str) {
        if self.open.is_empty() {
            return;
        }
        if let Some(mut span) = self.open.remove(&offset) {
            span.set_attribute(KeyValue::new("messaging.danube.delivery.outcome", outcome));
            if outcome != "ack" {
                span.set_status(Status::error(outcome));
            }
            span.end();
        }
    }

    /// All that are out are void.
    pub(crate) fn end_all(&mut self, outcome: &'static str) {
        while let Some(offset) = self.open.first_key_value().map(|(offset, _)| *offset) {
            self.end(offset, outcome);
        }
    }
}
