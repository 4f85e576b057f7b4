//! Traces: an OTLP receiver in this process gets one connected trace from the application's publish
//! over the broker to its ack, on both wires, and nothing of messages that belong to none.

use crate::harness::Node;
use crate::wire::{Control, Wire, message, within};
use danube_sdk::{Client, NewMessage};
use opentelemetry::trace::{SpanKind, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::block_in_place;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

const TOPIC: &str = "/default/traced";

/// Keeps the spans that it is sent, with the name of the service that sent them.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Vec<(String, Span)>>>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut kept = self.0.lock().expect("nobody panics here");
        for resource in request.into_inner().resource_spans {
            let attributes = resource.resource.unwrap_or_default().attributes;
            let name = attributes.into_iter().find(|it| it.key == "service.name");
            let name = match name.and_then(|it| it.value?.value) {
                Some(Value::StringValue(name)) => name,
                _ => String::new(),
            };
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            kept.extend(spans.map(|span| (name.clone(), span)));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Receiver {
    /// Listens; answers where.
    async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let service = TraceServiceServer::new(self.clone());
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        format!("http://{address}")
    }

    fn spans(&self) -> Vec<(String, Span)> {
        self.0.lock().expect("nobody panics here").clone()
    }
}

/// An application with traces of its own.
fn application(endpoint: &str) -> SdkTracerProvider {
    let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint);
    SdkTracerProvider::builder()
        .with_batch_exporter(exporter.build().expect("a plain endpoint"))
        .with_resource(Resource::builder().with_service_name("shop").build())
        .build()
}

fn text(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|it| it.key == key);
    match found.and_then(|it| it.value.as_ref()?.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{key} of {} is {other:?}", span.name),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_trace_goes_from_publish_to_ack() {
    let receiver = Receiver::default();
    let endpoint = receiver.listen().await;
    let mut node = block_in_place(|| Node::start_with(&["--otlp-endpoint", &endpoint]));
    let at = node.addresses().clone();
    Control::connect(&at.admin).await.create_topic(TOPIC, "task_queue").await;
    let provider = application(&endpoint);
    let tracer = provider.tracer("shop");

    let client = Client::connect(&at.broker).await.expect("connected");
    let consumer = client.consumer(TOPIC, "workers").subscribe().await.expect("opened");
    let producer = client.producer(TOPIC).open().await.expect("opened");
    // Around it, messages that belong to no trace.
    producer.send("before", None).await.expect("stored");
    let order = Context::new().with_span(tracer.start_with_context("order", &Context::new()));
    let trace_id = order.span().span_context().trace_id().to_bytes().to_vec();
    let sent = {
        let message = NewMessage::new("resize").attribute("source", "till-4");
        let sending = async { producer.send_message(message).await };
        opentelemetry::trace::FutureExt::with_context(sending, order.clone()).await
    };
    sent.expect("stored");
    order.span().end();
    producer.send("after", None).await.expect("stored");

    for expected in ["before", "resize", "after"] {
        let message = within("a message", consumer.next()).await.expect("received");
        assert_eq!(message.payload(), expected);
        let parent = message.trace_context();
        if expected == "resize" {
            assert_eq!(message.attribute("source"), Some("till-4"));
            let builder = tracer.span_builder("work").with_kind(SpanKind::Consumer);
            let mut span = tracer.build_with_context(builder, &parent);
            consumer.ack(&message).await.expect("acknowledged");
            opentelemetry::trace::Span::set_attribute(&mut span, KeyValue::new("done", true));
            opentelemetry::trace::Span::end(&mut span);
        } else {
            assert!(!parent.span().span_context().is_valid(), "{expected} belongs to no trace");
            consumer.ack(&message).await.expect("acknowledged");
        }
    }
    block_in_place(|| provider.shutdown()).expect("sent");
    // Its end sends what the broker still has.
    let status = block_in_place(|| node.terminate());
    assert!(status.success(), "{status}: {}", node.stderr());

    let spans = receiver.spans();
    let names: Vec<_> =
        spans.iter().map(|(service, span)| format!("{service}: {}", span.name)).collect();
    let expected = ["danube: deliver", "danube: publish", "shop: order", "shop: work"];
    let sorted: BTreeSet<String> =
        names.iter().map(|name| name.replace(&format!(" {TOPIC}"), "")).collect();
    assert_eq!(sorted.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{names:?}");
    assert_eq!(spans.len(), expected.len(), "no span of the others: {names:?}");

    let ids: BTreeSet<&[u8]> = spans.iter().map(|(_, span)| &span.span_id[..]).collect();
    for (_, span) in &spans {
        assert_eq!(span.trace_id, trace_id, "{} is in the trace", span.name);
        let is_root = span.name == "order";
        assert_eq!(span.parent_span_id.is_empty(), is_root, "{}", span.name);
        assert!(is_root || ids.contains(&span.parent_span_id[..]), "{} hangs loose", span.name);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{}", span.name);
    }
    let of = |name: &str| {
        let found = spans.iter().find(|(_, span)| span.name.starts_with(name));
        &found.expect("seen above").1
    };
    let (published, delivered) = (of("publish"), of("deliver"));
    for span in [published, delivered] {
        assert_eq!(text(span, "messaging.destination.name"), TOPIC);
        assert_eq!(text(span, "messaging.danube.message.offset"), "1");
    }
    assert_eq!(text(delivered, "messaging.destination.subscription.name"), "workers");
    assert_eq!(text(delivered, "messaging.danube.delivery.attempt"), "1");
    assert_eq!(text(delivered, "messaging.danube.delivery.outcome"), "ack");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_compatible_wire_carries_a_trace_too_and_a_nack_is_told() {
    let receiver = Receiver::default();
    let endpoint = receiver.listen().await;
    let mut node = block_in_place(|| Node::start_with(&["--otlp-endpoint", &endpoint]));
    let at = node.addresses().clone();
    Control::connect(&at.admin).await.create_topic(TOPIC, "task_queue").await;
    let mut wire = Wire::connect(&at.broker).await;
    let consumer = wire.subscribe(TOPIC, "s", "c").await.expect("subscribed");
    let mut stream = wire.receive(consumer).await.expect("opened");
    let producer = wire.create_producer(TOPIC, "p").await.expect("created");
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (payload, parent) in [
        ("traced", Some(traceparent.to_owned())),
        ("not recorded", Some(traceparent.replace("-01", "-00"))),
        ("nonsense", Some("nonsense".to_owned())),
        ("plain", None),
    ] {
        let mut message = message(TOPIC, producer, "p", payload.as_bytes().to_vec());
        message.attributes.extend(parent.map(|parent| ("traceparent".to_owned(), parent)));
        wire.send(message).await.expect("stored");
    }
    for index in 0..5 {
        let next = within("a message", stream.message()).await;
        let message = next.expect("the stream goes on").expect("it has not ended");
        if index == 0 {
            wire.nack(&message, "s").await.expect("refused");
        } else {
            wire.ack(&message, "s").await.expect("acknowledged");
        }
    }
    let status = block_in_place(|| node.terminate());
    assert!(status.success(), "{status}: {}", node.stderr());
    let spans: Vec<Span> = receiver.spans().into_iter().map(|(_, span)| span).collect();
    let mut outcomes: Vec<String> = spans
        .iter()
        .map(|span| match span.name.starts_with("deliver") {
            true => text(span, "messaging.danube.delivery.outcome"),
            false => "published".to_owned(),
        })
        .collect();
    outcomes.sort();
    assert_eq!(outcomes, ["ack", "nack", "published"], "{spans:#?}");
    for span in &spans {
        assert_eq!(span.parent_span_id, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_not_there_costs_no_message() {
    let mut node = block_in_place(|| {
        // A port that nobody listens on.
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let nobody = format!("http://{}", free.local_addr().expect("bound"));
        drop(free);
        Node::start_with(&["--otlp-endpoint", &nobody])
    });
    let at = node.addresses().clone();
    Control::connect(&at.admin).await.create_topic(TOPIC, "task_queue").await;
    let mut wire = Wire::connect(&at.broker).await;
    let producer = wire.create_producer(TOPIC, "p").await.expect("created");
    let mut sent = message(TOPIC, producer, "p", b"traced".to_vec());
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    sent.attributes.insert("traceparent".to_owned(), parent.to_owned());
    wire.send(sent).await.expect("stored");
    let status = block_in_place(|| node.terminate());
    assert!(status.success(), "{status}: {}", node.stderr());
    assert!(node.stderr().contains("BatchSpanProcessor.ExportError"), "{}", node.stderr());
}
