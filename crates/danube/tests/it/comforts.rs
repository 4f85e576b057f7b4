//! What makes the operators' tool pleasant: contexts, forms of output, completions, man pages.

use crate::harness::{Node, Run, command, danube, danube_ok};
use std::process::Stdio;

/// A run with these variables set.
fn with(variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = command();
    command.args(arguments).stdin(Stdio::null());
    command.envs(variables.iter().copied());
    command.output().expect("the binary was built for this test").into()
}

#[test]
fn a_context_names_a_cluster_and_flags_and_environment_come_first() {
    let (node, other) = (Node::start(), Node::start());
    let home = tempfile::tempdir().expect("a temporary directory can be made");
    let file = home.path().join("deep/contexts.yml");
    let file = file.to_str().expect("text");
    let run = |arguments: &[&str], more: &[(&str, &str)]| {
        with(&[&[("DANUBE_CONTEXT_FILE", file)], more].concat(), arguments)
    };
    let ok = |arguments: &[&str]| {
        let run = run(arguments, &[]);
        assert_eq!(run.code, 0, "{arguments:?}: {run:?}");
        run.stdout
    };
    ok(&["ctl", "context", "set", "prod", &node.addresses().admin]);
    ok(&["ctl", "context", "set", "lab", &other.addresses().admin]);
    assert_eq!(ok(&["ctl", "context", "show"]), format!("prod  {}\n", node.addresses().admin));
    assert!(ok(&["ctl", "context", "list"]).contains("* prod  "));
    ok(&["ctl", "namespaces", "create", "only-in-prod"]);
    assert!(ok(&["ctl", "namespaces", "list"]).contains("only-in-prod"));
    assert!(!ok(&["ctl", "--context", "lab", "namespaces", "list"]).contains("only-in-prod"));
    let list = ["ctl", "namespaces", "list"];
    let by_environment = run(&list, &[("DANUBE_ADMIN_ENDPOINT", &other.addresses().admin)]);
    assert!(!by_environment.stdout.contains("only-in-prod"));
    let by_flag = run(
        &["ctl", "--endpoint", &node.addresses().admin, "namespaces", "list"],
        &[("DANUBE_ADMIN_ENDPOINT", &other.addresses().admin), ("DANUBE_CONTEXT", "lab")],
    );
    assert!(by_flag.stdout.contains("only-in-prod"), "{by_flag:?}");
    ok(&["ctl", "context", "use", "lab"]);
    assert!(!ok(&list).contains("only-in-prod"));
    ok(&["ctl", "context", "remove", "lab"]);
    let unknown = run(&["ctl", "context", "use", "lab"], &[]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("context `lab` is not known: prod"), "{}", unknown.stderr);
    std::fs::write(file, "contexts: 7").expect("a temporary directory can be written");
    let broken = run(&list, &[]);
    assert_eq!(broken.code, 2, "{broken:?}");
    assert!(broken.stderr.contains("contexts.yml"), "{}", broken.stderr);
}

#[test]
fn a_result_can_be_a_table_json_or_yaml_and_has_no_colours() {
    let node = Node::start();
    let admin = node.addresses().admin.as_str();
    danube_ok(&["ctl", "--endpoint", admin, "topics", "create", "/default/t"]);
    let yaml = danube_ok(&["ctl", "--endpoint", admin, "topics", "list", "--output", "yaml"]);
    assert!(yaml.contains(": /default/t"), "{yaml}");
    for arguments in [&["topics", "list"][..], &["topics", "describe", "/default/t"], &["topcs"]] {
        let run = with(&[("NO_COLOR", "1")], &[&["ctl", "--endpoint", admin], arguments].concat());
        assert!(!format!("{}{}", run.stdout, run.stderr).contains('\x1b'), "{run:?}");
    }
}

#[test]
fn names_of_the_old_tools_and_guesses_are_understood() {
    let node = Node::start();
    let admin = node.addresses().admin.as_str();
    for arguments in [
        &["topic", "new", "/default/t"][..],
        &["topic", "ls"],
        &["ns", "list"],
        &["brokers", "leader"],
        &["broker", "list"],
        &["cluster", "status"],
        &["schemas", "list"],
        &["topics", "rm", "/default/t"],
    ] {
        danube_ok(&[&["ctl", "--endpoint", admin], arguments].concat());
    }
    let typo = danube(&["ctl", "topics", "exlain", "t"]);
    assert_eq!(typo.code, 2);
    assert!(typo.stderr.contains("'explain'"), "{}", typo.stderr);
}

#[test]
fn watching_prints_again_when_something_changed_and_only_reads() {
    let node = Node::start();
    let admin = node.addresses().admin.as_str();
    let write = danube(&["ctl", "--endpoint", admin, "namespaces", "create", "a", "--watch=1"]);
    assert_eq!(write.code, 2, "{write:?}");
    assert!(write.stderr.contains("for verbs that change nothing"), "{}", write.stderr);
    let mut watching = command()
        .args(["ctl", "--endpoint", admin, "namespaces", "list", "--output", "json", "--watch=1"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let mut documents =
        serde_json::Deserializer::from_reader(watching.stdout.take().expect("piped"))
            .into_iter::<Vec<String>>();
    let first = documents.next().expect("one").expect("JSON");
    assert!(!first.contains(&"later".to_owned()));
    danube_ok(&["ctl", "--endpoint", admin, "namespaces", "create", "later"]);
    let second = documents.next().expect("another").expect("JSON");
    assert!(second.contains(&"later".to_owned()));
    watching.kill().expect("our own child");
    watching.wait().expect("our own child");
}

#[test]
fn shells_are_given_completions_and_man_is_given_pages() {
    for (shell, says) in
        [("bash", "complete -F"), ("zsh", "#compdef danube"), ("fish", "complete -c danube")]
    {
        let script = danube_ok(&["completions", shell]);
        assert!(script.contains(says), "{shell}");
        assert!(script.contains("set-failure-policy") && script.contains("apply"), "{shell}");
    }
    let home = tempfile::tempdir().expect("a temporary directory can be made");
    danube_ok(&["man", home.path().to_str().expect("text")]);
    let page = std::fs::read_to_string(home.path().join("danube-ctl-topics-create.1"));
    assert!(page.expect("a page").contains("task_queue"));
    assert!(home.path().join("danube-ctl-apply.1").exists());
}
