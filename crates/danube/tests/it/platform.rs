//! What a service manager and a container runtime ask of the binary: to be told when it is ready and
//! when it stops, and a probe of its own.

use crate::harness::{Node, danube};
use std::os::unix::net::UnixDatagram;

#[test]
fn a_service_manager_is_told_when_it_is_ready_and_when_it_stops() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("notify");
    let manager = UnixDatagram::bind(&socket).expect("bound");
    let socket = format!("NOTIFY_SOCKET={}", socket.display());
    let mut node = Node::start_under(&["env", &socket], &[]);
    let heard = || {
        let mut heard = [0; 32];
        let len = manager.recv(&mut heard).expect("received");
        String::from_utf8_lossy(&heard[..len]).into_owned()
    };
    assert_eq!(heard(), "READY=1");
    assert!(node.terminate().success(), "{}", node.stderr());
    assert_eq!(heard(), "STOPPING=1");
}

#[test]
fn a_probe_says_whether_the_broker_is_ready() {
    let mut node = Node::start();
    let at = node.addresses().clone();
    let bare = |url: &str| url.replace("http://", "");
    let probe = |address: &str| danube(&["health", "--http-addr", address]);
    let asked = probe(&bare(&at.http));
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "ready\n"), "{}", asked.stderr);
    let wrong = probe(&bare(&at.admin));
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("is no broker"), "{}", wrong.stderr);
    node.terminate();
    let gone = probe(&bare(&at.http));
    assert_eq!(gone.code, 3, "{}", gone.stderr);
}
