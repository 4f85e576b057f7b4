//! From `proto/` to Rust, without protoc.
//!
//! All clients and servers are ordinary tonic ones but these: the server of `ConsumerService`
//! streams stored bytes as they are, so its code is generated apart, with our own codec for
//! `ReceiveMessages`; the native `Stream` service exists a second time, with codecs that leave
//! messages encoded. The whole contract is also written out as text, for the golden test.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tonic_prost_build::FileDescriptorSet;

const PROTOS: [&str; 5] = [
    "danube/api.proto",
    "danube/schema.proto",
    "danube/admin.proto",
    "danube/control.proto",
    "danube/stream.proto",
];

/// Number of the field `service` within a file descriptor, as paths of comments spell it.
const SERVICE: i32 = 6;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let contract = protox::compile(PROTOS, ["proto"])?;
    std::fs::write(out.join("contract.txt"), describe(&contract)?)?;

    let (ordinary, consumer) = set_consumer_service_apart(contract);
    tonic_prost_build::configure()
        .bytes(".danube.StreamMessage.payload")
        .bytes(".danube_schema")
        // In key order, so that one message has one encoding.
        .btree_map(".danube.StreamMessage.attributes")
        .bytes(".danube.stream.v1.Message.payload")
        .bytes(".danube.stream.v1.GetSchemaResponse")
        .btree_map(".danube.stream.v1.Message.attributes")
        .emit_rerun_if_changed(false)
        .out_dir(&out)
        .compile_fds(ordinary)?;

    let apart = out.join("consumer_service");
    std::fs::create_dir_all(&apart)?;
    tonic_prost_build::configure()
        .build_server(false)
        .extern_path(".danube", "crate::proto::danube")
        .emit_rerun_if_changed(false)
        .out_dir(&apart)
        .compile_fds(consumer)?;
    generate_consumer_server(&apart);
    generate_stream(&out)?;
    Ok(())
}

/// Everything without `ConsumerService`, and the file of `ConsumerService` with nothing else
/// generated from it.
fn set_consumer_service_apart(
    contract: FileDescriptorSet,
) -> (FileDescriptorSet, FileDescriptorSet) {
    let is_consumer = |name: Option<&String>| name.is_some_and(|name| name == "ConsumerService");
    let (mut ordinary, mut consumer) = (contract.clone(), contract);
    for file in &mut ordinary.file {
        let Some(index) = file.service.iter().position(|s| is_consumer(s.name.as_ref())) else {
            continue;
        };
        file.service.remove(index);
        // Comments point at services by index, and those behind the removed one moved up.
        let removed = i32::try_from(index).expect("a file has few services");
        let comments = file.source_code_info.iter_mut().flat_map(|info| &mut info.location);
        for path in comments.map(|comment| &mut comment.path) {
            match path.as_mut_slice() {
                [SERVICE, index, ..] if *index == removed => path.clear(),
                [SERVICE, index, ..] if *index > removed => *index -= 1,
                _ => {}
            }
        }
    }
    consumer.file.retain(|file| file.service.iter().any(|s| is_consumer(s.name.as_ref())));
    for file in &mut consumer.file {
        file.service.retain(|service| is_consumer(service.name.as_ref()));
        file.source_code_info = None;
    }
    (ordinary, consumer)
}

fn generate_consumer_server(out: &Path) {
    let unary = |name: &str, route: &str, input: &str, output: &str| {
        tonic_build::manual::Method::builder()
            .name(name)
            .route_name(route)
            .input_type(format!("crate::proto::danube::{input}"))
            .output_type(format!("crate::proto::danube::{output}"))
            .codec_path("tonic_prost::ProstCodec")
            .build()
    };
    let service = tonic_build::manual::Service::builder()
        .name("ConsumerService")
        .package("danube")
        .method(unary("subscribe", "Subscribe", "ConsumerRequest", "ConsumerResponse"))
        .method(
            tonic_build::manual::Method::builder()
                .name("receive_messages")
                .route_name("ReceiveMessages")
                .input_type("crate::proto::danube::ReceiveRequest")
                .output_type("crate::delivery::Delivery")
                .codec_path("crate::delivery::DeliveryCodec")
                .server_streaming()
                .build(),
        )
        .method(unary("ack", "Ack", "AckRequest", "AckResponse"))
        .method(unary("nack", "Nack", "NackRequest", "NackResponse"))
        .build();
    tonic_build::manual::Builder::new().build_client(false).out_dir(out).compile(&[service]);
}

/// The contract as text: every path with its kind, every enum value, every field with number,
/// presence and type. `optional` stands for explicit presence of a scalar or a message.
/// The native service with codecs that leave messages encoded; the codec of a client writes what
/// that of a server reads, so each side is generated on its own.
fn generate_stream(out: &Path) -> Result<(), Box<dyn Error>> {
    let method = |name: &str, route: &str, side: &str| {
        tonic_build::manual::Method::builder()
            .name(name)
            .route_name(route)
            .input_type(format!("crate::stream::{route}Request"))
            .output_type(format!("crate::stream::{route}Response"))
            .codec_path(format!("crate::stream::{side}{route}Codec"))
            .client_streaming()
            .server_streaming()
            .build()
    };
    for (dir, side, has_publish) in [
        ("stream_server", "Server", true),
        ("stream_consume_server", "Server", false),
        ("stream_client", "Client", true),
    ] {
        let service =
            tonic_build::manual::Service::builder().name("Stream").package("danube.stream.v1");
        let service = match has_publish {
            true => service.method(method("publish", "Publish", side)),
            false => service,
        };
        let service = service.method(method("consume", "Consume", side)).build();
        let is_server = side == "Server";
        let dir = out.join(dir);
        std::fs::create_dir_all(&dir)?;
        tonic_build::manual::Builder::new()
            .build_server(is_server)
            .build_client(!is_server)
            .out_dir(dir)
            .compile(&[service]);
    }
    Ok(())
}

fn describe(contract: &FileDescriptorSet) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    for file in &contract.file {
        writeln!(text, "package {}", file.package())?;
        for service in &file.service {
            for method in &service.method {
                let kind = |streaming| if streaming { "stream " } else { "" };
                writeln!(
                    text,
                    "  rpc /{}.{}/{} {}{} -> {}{}",
                    file.package(),
                    service.name(),
                    method.name(),
                    kind(method.client_streaming()),
                    local(file.package(), method.input_type()),
                    kind(method.server_streaming()),
                    local(file.package(), method.output_type()),
                )?;
            }
        }
        for item in &file.enum_type {
            let values = item.value.iter().map(|v| format!("{}={}", v.name(), v.number()));
            writeln!(text, "  enum {}: {}", item.name(), values.collect::<Vec<_>>().join(", "))?;
        }
        for message in &file.message_type {
            for item in &message.enum_type {
                let values = item.value.iter().map(|v| format!("{}={}", v.name(), v.number()));
                let values = values.collect::<Vec<_>>().join(", ");
                writeln!(text, "  enum {}.{}: {values}", message.name(), item.name())?;
            }
            let maps: BTreeMap<String, String> = message
                .nested_type
                .iter()
                .map(|entry| {
                    let name = format!("{}.{}", message.name(), entry.name());
                    let types = entry.field.iter().map(|f| scalar(f.r#type().as_str_name()));
                    (name, format!("map<{}>", types.collect::<Vec<_>>().join(", ")))
                })
                .collect();
            let fields = message.field.iter().map(|field| {
                let mut kind = match field.type_name() {
                    "" => scalar(field.r#type().as_str_name()),
                    name => local(file.package(), name),
                };
                if let Some(map) = maps.get(&kind) {
                    kind = map.clone();
                } else if field.label().as_str_name() == "LABEL_REPEATED" {
                    kind = format!("repeated {kind}");
                } else if field.proto3_optional() {
                    kind = format!("optional {kind}");
                } else if let Some(index) = field.oneof_index {
                    let group = &message.oneof_decl[usize::try_from(index)?];
                    kind = format!("oneof({}) {kind}", group.name());
                }
                Ok::<_, Box<dyn Error>>(format!("{}={}:{kind}", field.name(), field.number()))
            });
            let fields = fields.collect::<Result<Vec<_>, _>>()?.join(", ");
            writeln!(text, "  message {}: {fields}", message.name())?;
        }
    }
    Ok(text)
}

fn scalar(type_name: &str) -> String {
    type_name.trim_start_matches("TYPE_").to_lowercase()
}

/// `.danube.MsgID` as `MsgID` within package `danube`.
fn local(package: &str, name: &str) -> String {
    let name = name.trim_start_matches('.');
    name.strip_prefix(package).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name).to_owned()
}
