//! What `deploy/` ships, as far as it can be held against the product without running anything.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A file of the checkout.
fn text(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Labels of each metric, by the names that queries use.
fn metrics() -> BTreeMap<String, Vec<String>> {
    let contract = danube_broker::metrics_contract();
    let mut known = BTreeMap::new();
    for line in contract.lines() {
        let mut words = line.split(' ');
        let name = words.next().expect("a name").to_owned();
        let kind = words.next().expect("a type");
        let labels = words.next().unwrap_or("").split(',').map(str::to_owned).collect();
        match kind {
            "histogram" => {
                for end in ["_bucket", "_sum", "_count"] {
                    known.insert(format!("{name}{end}"), Vec::clone(&labels));
                }
            }
            _ => drop(known.insert(name, labels)),
        }
    }
    known
}

/// The words of an expression that are names of our metrics.
fn names(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("danube_") || word.starts_with("process_"))
}

fn expressions_of_dashboard() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&text("deploy/grafana/danube.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let queries = variables.iter().map(|variable| &variable["query"]["query"]);
    let all = targets.map(|target| &target["expr"]).chain(queries);
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn dashboard_and_alerts_use_only_metrics_that_exist() {
    let known = metrics();
    let mut used = 0;
    let alerts = text("deploy/prometheus/alerts.yml");
    let tests = text("deploy/prometheus/alerts.test.yml");
    let mut expressions = expressions_of_dashboard();
    assert!(expressions.len() > 50, "{}", expressions.len());
    // Prose may name a metric too, and then must name one that exists.
    expressions.extend(alerts.lines().chain(tests.lines()).map(str::to_owned));
    for expression in &expressions {
        for name in names(expression) {
            let prose = ["_bucket", "_sum", "_count"]
                .iter()
                .any(|end| known.contains_key(&format!("{name}{end}")));
            assert!(known.contains_key(name) || prose, "`{name}` in `{expression}` is no metric");
            used += 1;
        }
    }
    assert!(used > 100, "{used}");
}

#[test]
fn panels_have_names_of_their_own_and_do_not_overlap() {
    let dashboard: Value = serde_json::from_str(&text("deploy/grafana/danube.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let place = |panel: &Value, key: &str| panel["gridPos"][key].as_u64().expect("a number");
    for (index, panel) in panels.iter().enumerate() {
        assert!(place(panel, "x") + place(panel, "w") <= 24, "{}", panel["title"]);
        for other in &panels[..index] {
            assert_ne!(panel["id"], other["id"]);
            assert_ne!(panel["title"], other["title"]);
            let apart = |at: &str, len: &str| {
                place(panel, at) + place(panel, len) <= place(other, at)
                    || place(other, at) + place(other, len) <= place(panel, at)
            };
            assert!(apart("x", "w") || apart("y", "h"), "{} {}", panel["title"], other["title"]);
        }
    }
}
