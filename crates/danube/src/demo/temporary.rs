//! A broker for a few seconds: free ports of the loopback address, and a directory of its own.
//!
//! Law: whatever happens, the directory is removed.

use crate::failure::Failure;
use danube_broker::{Addresses, Broker, BrokerOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// A running broker and its files.
pub struct TemporaryBroker {
    broker: Broker,
    dir: TemporaryDir,
}

impl TemporaryBroker {
    /// Starts it.
    ///
    /// # Errors
    /// That there is no room for it, or why it does not start.
    pub async fn start() -> Result<TemporaryBroker, Failure> {
        let dir = TemporaryDir::make()?;
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = BrokerOptions {
            data_dir: dir.path.clone(),
            broker_addr: free,
            admin_addr: free,
            http_addr: free,
            ..BrokerOptions::default()
        };
        let broker = Broker::start(options, |_| {}).await;
        let broker = broker.map_err(|error| Failure::refused(error.to_string()))?;
        Ok(TemporaryBroker { broker, dir })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        self.broker.addresses()
    }

    /// Where its files are.
    pub fn dir(&self) -> &Path {
        &self.dir.path
    }

    /// Stops it and removes its files.
    ///
    /// # Errors
    /// That it did not stop as it should.
    pub async fn stop(self) -> Result<(), Failure> {
        self.broker.stop().await.map_err(|error| Failure::refused(error.to_string()))
    }
}

/// A directory that is removed when it goes out of scope.
struct TemporaryDir {
    path: PathBuf,
}

impl TemporaryDir {
    fn make() -> Result<TemporaryDir, Failure> {
        let path = std::env::temp_dir().join(format!("danube-demo-{}", std::process::id()));
        // Not there before, so it is nobody else's.
        std::fs::create_dir(&path).map_err(|error| {
            Failure::refused(format!("directory `{}` cannot be made: {error}", path.display()))
                .help("remove it, or set TMPDIR to a directory that can be written")
        })?;
        Ok(TemporaryDir { path })
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("note: directory `{}` could not be removed: {error}", self.path.display());
        }
    }
}
