//! The broker goes, by SIGKILL or by SIGTERM, and comes back on the same ports; clients stay.
//!
//! A broker that is asked to stop ends its streams with a status that the official client knows how
//! to handle, so it must need no help. A killed one resets its connections, and then the client may
//! hand the application an UNKNOWN, or give up receiving; what the application does then is in
//! [`Survivor`] and in [`send`].

use crate::broker::Broker;
use crate::clients::{self, *};
use crate::wire::Admin;
use danube_client::{DanubeClient, Producer, SubType};
use danube_core::message::StreamMessage;
use std::collections::BTreeSet;
use std::time::Duration;

const TOPIC: &str = "/default/restart";

#[derive(Clone, Copy, PartialEq)]
enum End {
    Kill,
    Terminate,
}

async fn bounce(broker: &mut Broker, end: End) {
    match end {
        End::Kill => broker.kill().await,
        End::Terminate => broker.terminate().await,
    }
    broker.restart().await;
}

/// Sends; after a kill, again and again until it is acknowledged.
async fn send(producer: &Producer, payload: &str, after: End) {
    if after == End::Terminate {
        return clients::send(producer, payload.as_bytes()).await;
    }
    let sending = async { while producer.send(payload.into(), None).await.is_err() {} };
    within("an acknowledgement", sending).await;
}

/// A consumer of an application that carries on.
struct Survivor {
    client: DanubeClient,
    kind: SubType,
    inbox: Inbox,
    end: End,
}

impl Survivor {
    async fn open(broker: &Broker, kind: SubType, end: End) -> Survivor {
        let client = broker.client().await;
        let inbox = Survivor::who(&kind).open(&client).await;
        Survivor { client, kind, inbox, end }
    }

    fn who(kind: &SubType) -> Who<'static> {
        Who::new(TOPIC, "s", kind.clone(), "c")
    }

    /// Subscribes anew if the client gave up.
    async fn revive(&mut self) {
        if self.inbox.gave_up() {
            assert!(self.end == End::Kill, "after a stop in good order the client needs no help");
            self.inbox = Survivor::who(&self.kind).open(&self.client).await;
        }
    }

    /// The next message, acknowledged.
    async fn take(&mut self) -> StreamMessage {
        loop {
            if let Some(message) = self.inbox.next_or_end().await {
                while let Err(error) = self.inbox.consumer.ack(&message).await {
                    assert!(self.end == End::Kill, "after a stop in good order: {error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                return message;
            }
            self.revive().await;
        }
    }

    /// Waits until it is connected to the restarted broker.
    async fn is_back(&mut self, broker: &Broker) {
        let mut admin = Admin::connect(broker).await;
        let waiting = async {
            while !admin.are_connected(TOPIC, "s", &["c"]).await {
                self.revive().await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within("the consumer to be back", waiting).await;
    }
}

/// Producer and consumer live through a restart; what was acknowledged does not come again, and
/// what was not does.
async fn clients_survive(kind: SubType, end: End) {
    let mut broker = Broker::start().await;
    let producer = reliable_producer(&broker.client().await, TOPIC, "p").await;
    let mut consumer = Survivor::open(&broker, kind, end).await;
    let payloads = numbered("m", 12);
    send_all(&producer, &payloads[..6]).await;
    let mut settled = BTreeSet::new();
    while settled.len() < 3 {
        settled.insert(text(&consumer.take().await));
    }
    bounce(&mut broker, end).await;
    for payload in &payloads[6..] {
        send(&producer, payload, end).await;
    }
    // Some of these came before the restart and waited in the client; their acks count anyway.
    let mut seen = BTreeSet::new();
    while seen.len() < 9 {
        let text = text(&consumer.take().await);
        assert!(!settled.contains(&text), "{text} was acknowledged before the restart");
        seen.insert(text);
    }
    assert_eq!(sorted(payloads), sorted(seen.into_iter().chain(settled).collect()));
    let mut admin = Admin::connect(&broker).await;
    admin.until(TOPIC, "nothing is left", |d| d.subscriptions[0].backlog == 0).await;
}

#[tokio::test]
async fn exclusive_clients_survive_a_kill() {
    clients_survive(SubType::Exclusive, End::Kill).await;
}

#[tokio::test]
async fn exclusive_clients_survive_a_termination() {
    clients_survive(SubType::Exclusive, End::Terminate).await;
}

#[tokio::test]
async fn shared_clients_survive_a_kill() {
    clients_survive(SubType::Shared, End::Kill).await;
}

#[tokio::test]
async fn shared_clients_survive_a_termination() {
    clients_survive(SubType::Shared, End::Terminate).await;
}

#[tokio::test]
async fn failover_clients_survive_a_kill() {
    clients_survive(SubType::FailOver, End::Kill).await;
}

#[tokio::test]
async fn key_shared_clients_survive_a_kill() {
    clients_survive(SubType::KeyShared, End::Kill).await;
}

async fn non_reliable_clients_survive(end: End) {
    let mut broker = Broker::start().await;
    let producer = plain_producer(&broker.client().await, TOPIC, "p").await;
    let mut consumer = Survivor::open(&broker, SubType::Shared, end).await;
    consumer.is_back(&broker).await;
    send(&producer, "before", End::Terminate).await;
    let before = consumer.take().await;
    bounce(&mut broker, end).await;
    consumer.is_back(&broker).await;
    send(&producer, "after", end).await;
    let after = consumer.take().await;
    assert_eq!((text(&before), text(&after)), ("before".into(), "after".into()));
    assert!(after.msg_id.topic_offset > before.msg_id.topic_offset, "offsets never repeat");
}

#[tokio::test]
async fn non_reliable_clients_survive_a_kill() {
    non_reliable_clients_survive(End::Kill).await;
}

#[tokio::test]
async fn non_reliable_clients_survive_a_termination() {
    non_reliable_clients_survive(End::Terminate).await;
}

/// After a termination the clients go on by themselves. After a kill the official consumer may
/// have given up some of its partitions without telling, so the application makes it anew.
async fn partitioned_clients_survive(end: End) {
    let mut broker = Broker::start().await;
    let producer = producer(&broker.client().await, TOPIC, "p", true, Some(3)).await;
    let mut consumer = Survivor::open(&broker, SubType::Shared, end).await;
    send_all(&producer, numbered("before", 6)).await;
    let mut before = BTreeSet::new();
    while before.len() < 6 {
        before.insert(text(&consumer.take().await));
    }
    bounce(&mut broker, end).await;
    if end == End::Kill {
        consumer.inbox.close().await;
        consumer = Survivor::open(&broker, SubType::Shared, end).await;
    }
    for payload in numbered("after", 6) {
        send(&producer, &payload, end).await;
    }
    let mut after = BTreeSet::new();
    while after.len() < 6 {
        after.insert(text(&consumer.take().await));
    }
    assert_eq!(before.into_iter().collect::<Vec<_>>(), numbered("before", 6));
    assert_eq!(after.into_iter().collect::<Vec<_>>(), numbered("after", 6));
}

#[tokio::test]
async fn partitioned_clients_survive_a_kill() {
    partitioned_clients_survive(End::Kill).await;
}

#[tokio::test]
async fn partitioned_clients_survive_a_termination() {
    partitioned_clients_survive(End::Terminate).await;
}

#[tokio::test]
async fn a_subscription_that_never_acknowledged_anything_starts_where_it_was_made() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    send(&producer, "too early", End::Terminate).await;
    Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await.close().await;
    send_all(&producer, ["one", "two"]).await;
    bounce(&mut broker, End::Kill).await;
    let client = broker.client().await;
    let mut inbox = Who::new(TOPIC, "s", SubType::Exclusive, "c").open(&client).await;
    assert_eq!(texts(&inbox.take_many(2).await), ["one", "two"]);
    inbox.stays_empty().await;
}

#[tokio::test]
async fn acks_out_of_order_survive_a_kill() {
    let mut broker = Broker::start().await;
    let client = broker.client().await;
    let producer = reliable_producer(&client, TOPIC, "p").await;
    let who = Who::new(TOPIC, "s", SubType::Exclusive, "c");
    let mut inbox = who.open(&client).await;
    send_all(&producer, numbered("m", 6)).await;
    let mut messages = Vec::new();
    for _ in 0..6 {
        messages.push(inbox.next().await);
    }
    for index in [5, 1, 3] {
        inbox.ack(&messages[index]).await;
    }
    // Else this one would come back as well, and the two would take the stream from each other.
    inbox.close().await;
    bounce(&mut broker, End::Kill).await;
    let mut inbox = who.open(&broker.client().await).await;
    assert_eq!(texts(&inbox.take_many(3).await), ["m-0", "m-2", "m-4"]);
    inbox.stays_empty().await;
}
