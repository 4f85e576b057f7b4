//! Tells the service manager that started us how far we are: `Type=notify` of systemd, which is one
//! datagram to a socket that it names.
//!
//! Law: without such a manager nothing happens, and a manager that does not listen is no reason to
//! stop.

use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names the socket.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// The broker serves.
pub fn ready() {
    tell("READY=1");
}

/// The broker has begun to stop.
pub fn stopping() {
    tell("STOPPING=1");
}

fn tell(state: &str) {
    let Some(socket) = std::env::var_os(SOCKET_VARIABLE).filter(|name| !name.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket.to_string_lossy(), state) {
        tracing::warn!(%error, state, "the service manager could not be told");
    }
}

fn send(socket: &str, state: &str) -> std::io::Result<()> {
    let address = match socket.strip_prefix('@') {
        // No file, but a name of the system's own.
        Some(name) => abstract_address(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &str) -> std::io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &str) -> std::io::Result<SocketAddr> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_hears_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).expect("bound");
        send(path.to_str().expect("a plain path"), "READY=1").expect("sent");
        let mut heard = [0; 16];
        let len = manager.recv(&mut heard).expect("received");
        assert_eq!(&heard[..len], b"READY=1");
        drop(manager);
        assert!(send(path.to_str().expect("a plain path"), "READY=1").is_err(), "nobody listens");
    }
}
