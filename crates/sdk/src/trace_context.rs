//! The trace that is current where a message is sent goes with it, and comes out where it is
//! received: W3C trace context in the attributes.
//!
//! What is left to others: making spans and sending them anywhere. Law: a message that already
//! names a trace keeps it.

use danube_wire::trace_context::{TRACEPARENT, TRACESTATE, TraceParent};
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};

/// Adds the current trace to what goes with a message.
pub(crate) fn inject(attributes: &mut Vec<(String, String)>) {
    let current = Context::map_current(|context| {
        context.has_active_span().then(|| context.span().span_context().clone())
    });
    let Some(span) = current.filter(SpanContext::is_valid) else { return };
    if attributes.iter().any(|(name, _)| name == TRACEPARENT) {
        return;
    }
    let parent = TraceParent {
        trace_id: span.trace_id().to_bytes(),
        span_id: span.span_id().to_bytes(),
        flags: span.trace_flags().to_u8(),
    };
    attributes.push((TRACEPARENT.to_owned(), parent.to_string()));
    let state = span.trace_state().header();
    if !state.is_empty() {
        attributes.push((TRACESTATE.to_owned(), state));
    }
}

/// The trace that a message came with, to be the parent of what is done with it.
pub(crate) fn extract(attribute: impl Fn(&'static str) -> Option<String>) -> Context {
    let Some(parent) = attribute(TRACEPARENT).and_then(|text| TraceParent::parse(&text)) else {
        return Context::new();
    };
    let state = attribute(TRACESTATE).and_then(|text| text.parse::<TraceState>().ok());
    Context::new().with_remote_span_context(SpanContext::new(
        TraceId::from_bytes(parent.trace_id),
        SpanId::from_bytes(parent.span_id),
        TraceFlags::new(parent.flags),
        true,
        state.unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Attributes;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(attributes: &[(String, String)], name: &str) -> Option<String> {
        attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn the_current_trace_goes_with_a_message_and_comes_out_again() {
        let mut attributes = Vec::new();
        inject(&mut attributes);
        assert_eq!(attributes, [], "there is no trace");

        let sent = [(TRACEPARENT, PARENT), (TRACESTATE, "vendor=1")];
        let sent: Attributes =
            sent.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let _current = extract(|name| sent.get(name).cloned()).attach();
        inject(&mut attributes);
        assert_eq!(of(&attributes, TRACEPARENT).as_deref(), Some(PARENT));
        assert_eq!(of(&attributes, TRACESTATE).as_deref(), Some("vendor=1"));

        let mut own = vec![(TRACEPARENT.to_owned(), "mine".to_owned())];
        inject(&mut own);
        assert_eq!(own.len(), 1, "a message that names a trace keeps it");
    }

    #[test]
    fn a_message_without_a_trace_has_an_empty_one() {
        assert!(!extract(|_| None).span().span_context().is_valid());
        assert!(!extract(|_| Some("nonsense".to_owned())).span().span_context().is_valid());
    }
}
