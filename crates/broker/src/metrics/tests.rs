//! What a scrape looks like, and how large it can become.

use super::*;
use expect_test::expect_file;
use std::collections::BTreeSet;

/// Samples and bytes of one scrape that are never exceeded with the default bounds. The page
/// `docs/reference/metrics.md` promises the first.
const SERIES_MAX: usize = 13_000;
const BYTES_MAX: usize = 2_000_000;

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).expect("well formed")
}

fn subscription(name: &str) -> SubscriptionName {
    SubscriptionName::parse(name).expect("well formed")
}

fn render(metrics: &Metrics) -> String {
    metrics.render(Figures::default(), Duration::ZERO, WallMs(10_000))
}

fn samples(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
        (series, value.parse().expect("a number"))
    })
}

fn value(text: &str, series: &str) -> f64 {
    let found = samples(text).find(|(name, _)| *name == series);
    found.unwrap_or_else(|| panic!("no series {series} in\n{text}")).1
}

#[test]
fn names_types_and_labels_are_pinned() {
    expect_file!["contract.txt"].assert_eq(&metrics_contract());
    expect_file!["../../../../docs/reference/metrics.md"].assert_eq(&metrics_page());
}

#[test]
fn what_is_shown_is_what_the_list_says() {
    let metrics = Metrics::new(&MetricsOptions::default());
    metrics.call("Discovery", "topic_lookup", "ok");
    let jobs = metrics.topic(&topic("/default/jobs"));
    jobs.refused(FaultKind::Invalid, 1);
    jobs.checked(ValidationPolicy::Enforce);
    jobs.misfit(MisfitKind::PayloadInvalid);
    let workers = metrics.subscription(&topic("/default/jobs"), &subscription("wo\"rk\\ers"));
    workers.note(Note::DeadLetter(danube_core::Offset(0)));
    let text = render(&metrics);
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(text.contains(r#"subscription="wo\"rk\\ers""#), "{text}");

    let mut shown = BTreeSet::new();
    for (series, _) in samples(&text) {
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let bare = ["_bucket", "_sum", "_count"].iter().find_map(|end| {
            let bare = name.strip_suffix(end)?;
            list::METRICS.iter().find(|known| known.name == bare)
        });
        let metric = bare.or_else(|| list::METRICS.iter().find(|known| known.name == name));
        let metric = metric.unwrap_or_else(|| panic!("`{name}` is not in the list"));
        for label in metric.labels {
            assert!(labels.contains(&format!("{label}=\"")), "{series} lacks `{label}`");
        }
        shown.insert(metric.name);
    }
    let listed: BTreeSet<_> = list::METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(shown, listed, "everything in the list is shown");
}

#[test]
fn ages_and_latencies_are_in_the_units_that_their_names_say() {
    let metrics = Metrics::new(&MetricsOptions::default());
    let name = topic("/default/jobs");
    let jobs = metrics.topic(&name);
    jobs.published(2, 2_000, Duration::from_micros(1_500));
    let workers = metrics.subscription(&name, &subscription("w"));
    workers.oldest(WallMs(7_500));
    workers.took(WallMs(9_000), WallMs(9_250), 1);
    workers.took(WallMs(0), WallMs(9_250), 1);
    let text = render(&metrics);
    let latency = "danube_producer_send_latency_ms";
    assert_eq!(value(&text, &format!("{latency}_sum{{topic=\"/default/jobs\"}}")), 1.5);
    assert_eq!(
        value(&text, &format!("{latency}_bucket{{le=\"1.0\",topic=\"/default/jobs\"}}")),
        0.0
    );
    assert_eq!(
        value(&text, &format!("{latency}_bucket{{le=\"2.5\",topic=\"/default/jobs\"}}")),
        1.0
    );
    let size = "danube_topic_message_size_bytes";
    assert_eq!(value(&text, &format!("{size}_count{{topic=\"/default/jobs\"}}")), 2.0);
    let of = "{topic=\"/default/jobs\",subscription=\"w\"}";
    let age = format!("danube_subscription_oldest_unacked_age_seconds{of}");
    assert_eq!(value(&text, &age), 2.5);
    let took = "danube_subscription_publish_to_deliver_seconds";
    assert_eq!(value(&text, &format!("{took}_sum{of}")), 0.25);
    assert_eq!(
        value(&text, &format!("{took}_count{of}")),
        1.0,
        "one without a time is not counted"
    );
}

#[test]
fn twenty_thousand_topics_do_not_explode_the_scrape() {
    let metrics = Metrics::new(&MetricsOptions::default());
    let mut kept = Vec::new();
    // Names as long as people make them, every error, every policy.
    let long = "a-name-of-some-length-as-tenants-and-agents-have-them";
    for index in 0..20_000_u64 {
        let name = topic(&format!("/default/{long}-{index}"));
        let numbers = metrics.topic(&name);
        numbers.published(1 + usize::try_from(index % 977).expect("small"), 1_000, Duration::ZERO);
        for kind in
            [FaultKind::Retry, FaultKind::Exhausted, FaultKind::Invalid, FaultKind::NotFound]
        {
            numbers.refused(kind, 1);
        }
        numbers.checked(ValidationPolicy::Enforce);
        numbers.misfit(MisfitKind::PayloadInvalid);
        let workers = metrics.subscription(&name, &subscription(long));
        workers.delivered(1, 1_000);
        kept.push((numbers, workers));
    }
    let text = render(&metrics);
    let series = samples(&text).count();
    eprintln!("{series} series, {} bytes", text.len());
    assert!(series <= SERIES_MAX, "{series} series");
    assert!(text.len() <= BYTES_MAX, "{} bytes", text.len());
    let published: f64 = samples(&text)
        .filter(|(name, _)| name.starts_with("danube_topic_messages_in_total"))
        .map(|(_, value)| value)
        .sum();
    let all: u64 = (0..20_000).map(|index| 1 + index % 977).sum();
    assert_eq!(published, all as f64, "nothing is lost in the sum");
}

#[test]
fn a_sum_never_goes_back_when_the_busiest_change_or_go() {
    let metrics = Metrics::new(&MetricsOptions { topics_max: 1, subscriptions_max: 1 });
    let (a, b) = (metrics.topic(&topic("/default/a")), metrics.topic(&topic("/default/b")));
    let publish = |topic: &TopicMetrics, count| topic.published(count, count, Duration::ZERO);
    let of = |text: &str, name: &str| {
        value(text, &format!("danube_topic_messages_in_total{{topic=\"{name}\"}}"))
    };
    publish(&a, 10);
    publish(&b, 1);
    let text = render(&metrics);
    assert_eq!((of(&text, "/default/a"), of(&text, "_rest")), (10.0, 1.0));
    publish(&b, 100);
    let text = render(&metrics);
    assert_eq!((of(&text, "/default/b"), of(&text, "_rest")), (0.0, 111.0 - 10.0));
    publish(&b, 5);
    publish(&a, 2);
    let text = render(&metrics);
    assert_eq!((of(&text, "/default/b"), of(&text, "_rest")), (5.0, 103.0));
    drop(a);
    let text = render(&metrics);
    assert_eq!((of(&text, "/default/b"), of(&text, "_rest")), (5.0, 103.0), "it stays in the sum");
    assert!(
        text.contains("danube_broker_assignments_total{broker_id=\"1\",action=\"unassign\"} 1")
    );
}

#[test]
fn a_topic_that_is_loaded_again_takes_the_place_of_its_former_self() {
    let metrics = Metrics::new(&MetricsOptions::default());
    let before = metrics.topic(&topic("/default/a"));
    before.published(3, 3, Duration::ZERO);
    let after = metrics.topic(&topic("/default/a"));
    after.published(1, 1, Duration::ZERO);
    // The last handle of the former one goes late.
    drop(before);
    let text = render(&metrics);
    assert_eq!(value(&text, "danube_topic_messages_in_total{topic=\"/default/a\"}"), 1.0);
}
