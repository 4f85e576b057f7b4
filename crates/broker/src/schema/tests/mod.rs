//! The registry and the gate behind their services, without a network.

mod gate;
mod registry;
mod statuses;

use crate::broker::Addresses;
use crate::clock::Clock;
use crate::context::Context;
use crate::options::BrokerOptions;
use crate::rpc::Rpc;
use crate::schema::Registry;
use danube_core::change::{Change, CreateTopic};
use danube_core::{Delivery, Incarnation, TopicName};
use danube_meta::{Meta, MetaOptions};
use danube_store::{Store, StoreOptions};
use danube_wire::proto::danube::producer_service_server::ProducerService;
use danube_wire::proto::danube::schema_reference::VersionRef;
use danube_wire::proto::danube_schema::schema_registry_server::SchemaRegistry;
use danube_wire::proto::{danube, danube_schema as proto};
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// A broker without listeners.
pub(super) struct House {
    pub(super) registry: Registry,
    pub(super) rpc: Rpc,
    pub(super) context: Arc<Context>,
    _dir: tempfile::TempDir,
}

impl House {
    pub(super) async fn open() -> House {
        let dir = tempfile::tempdir().expect("a directory");
        let meta = Meta::open(MetaOptions::new(dir.path().join("raft"))).await.expect("opens");
        let options = StoreOptions::new(dir.path().join("wal"), Incarnation(1));
        let store = Store::open(options, &mut |_| {}).expect("opens");
        let options = BrokerOptions::default();
        let addresses = Addresses {
            broker: options.broker_addr,
            admin: options.admin_addr,
            http: options.http_addr,
        };
        let context = Arc::new(Context::new(options, meta, store, Incarnation(1)));
        context.set_addresses(addresses, "http://broker:6650".into());
        let (registry, rpc) = (Registry::new(Arc::clone(&context)), Rpc::new(Arc::clone(&context)));
        House { registry, rpc, context, _dir: dir }
    }

    pub(super) async fn register(
        &self,
        subject: &str,
        schema_type: &str,
        definition: &str,
    ) -> Result<proto::RegisterSchemaResponse, Status> {
        let request = proto::RegisterSchemaRequest {
            subject: subject.into(),
            schema_type: schema_type.into(),
            schema_definition: definition.as_bytes().to_vec().into(),
            created_by: "danube-test".into(),
            ..Default::default()
        };
        self.registry.register_schema(Request::new(request)).await.map(Response::into_inner)
    }

    pub(super) async fn check(
        &self,
        subject: &str,
        schema_type: &str,
        definition: &str,
        mode: Option<&str>,
    ) -> proto::CheckCompatibilityResponse {
        let request = proto::CheckCompatibilityRequest {
            subject: subject.into(),
            schema_type: schema_type.into(),
            new_schema_definition: definition.as_bytes().to_vec().into(),
            compatibility_mode: mode.map(str::to_owned),
        };
        let answer = self.registry.check_compatibility(Request::new(request)).await;
        answer.expect("is a definition").into_inner()
    }

    pub(super) async fn set_mode(&self, subject: &str, mode: &str) {
        let request = proto::SetCompatibilityModeRequest {
            subject: subject.into(),
            compatibility_mode: mode.into(),
        };
        self.registry.set_compatibility_mode(Request::new(request)).await.expect("is set");
    }

    pub(super) async fn configure(
        &self,
        topic: &str,
        subject: &str,
        policy: &str,
        payload: bool,
    ) -> Result<(), Status> {
        let request = proto::ConfigureTopicSchemaRequest {
            topic_name: topic.into(),
            schema_subject: subject.into(),
            validation_policy: policy.into(),
            enable_payload_validation: payload,
        };
        self.registry.configure_topic_schema(Request::new(request)).await.map(|_| ())
    }

    pub(super) async fn set_policy(
        &self,
        topic: &str,
        policy: &str,
        payload: bool,
    ) -> Result<(), Status> {
        let request = proto::UpdateTopicValidationPolicyRequest {
            topic_name: topic.into(),
            validation_policy: policy.into(),
            enable_payload_validation: payload,
        };
        self.registry.update_topic_validation_policy(Request::new(request)).await.map(|_| ())
    }

    pub(super) async fn create_topic(&self, name: &str) {
        let create = CreateTopic {
            name: topic(name),
            partitions: None,
            intent: None,
            delivery: Delivery::Reliable,
            schema_subject: None,
            dead_letter_topic: None,
            implicit: false,
        };
        self.context.meta.propose(Change::from(create), Clock::wall()).await.expect("is made");
    }

    pub(super) async fn producer(
        &self,
        topic: &str,
        name: &str,
        schema: Option<(&str, VersionRef)>,
    ) -> Result<u64, Status> {
        let request = danube::ProducerRequest {
            topic_name: topic.into(),
            producer_name: name.into(),
            dispatch_strategy: danube::DispatchStrategy::Reliable.into(),
            schema_ref: schema.map(|(subject, version)| danube::SchemaReference {
                subject: subject.into(),
                version_ref: Some(version),
            }),
            ..Default::default()
        };
        let answer = self.rpc.create_producer(Request::new(request)).await?;
        Ok(answer.into_inner().producer_id)
    }

    /// Publishes with this schema id and version.
    pub(super) async fn publish(
        &self,
        topic: &str,
        producer_id: u64,
        (schema_id, schema_version): (Option<u64>, Option<u32>),
        payload: &[u8],
    ) -> Result<(), Status> {
        let message = danube::StreamMessage {
            msg_id: Some(danube::MsgId {
                producer_id,
                topic_name: topic.into(),
                ..Default::default()
            }),
            payload: payload.to_vec().into(),
            producer_name: "p".into(),
            schema_id,
            schema_version,
            ..Default::default()
        };
        self.rpc.send_message(Request::new(message)).await.map(|_| ())
    }

    /// The sum of a counter, over all its labels that have `with` in them.
    pub(super) fn counted(&self, counter: &str, with: &str) -> u64 {
        let text = self.context.scrape();
        let lines = text.lines().filter(|line| line.starts_with(counter) && line.contains(with));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }
}

pub(super) fn topic(name: &str) -> TopicName {
    TopicName::parse(name).expect("well formed")
}
