//! The way to other brokers, of which there are none: a cluster of one.
//!
//! Law: nobody is ever reached, and the engine hears so at once.

use crate::types::Types;
use openraft::BasicNode;
use openraft::error::{InstallSnapshotError, RPCError, RaftError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};

/// Knows no other broker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoPeers;

type Refusal<E> = RPCError<u64, BasicNode, E>;

fn unreachable<E: std::error::Error>() -> Refusal<E> {
    let why =
        std::io::Error::new(std::io::ErrorKind::NotConnected, "a cluster of one has no peers");
    RPCError::Unreachable(Unreachable::new(&why))
}

impl RaftNetworkFactory<Types> for NoPeers {
    type Network = NoPeers;

    async fn new_client(&mut self, _: u64, _: &BasicNode) -> NoPeers {
        NoPeers
    }
}

impl RaftNetwork<Types> for NoPeers {
    async fn append_entries(
        &mut self,
        _: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Refusal<RaftError<u64>>> {
        Err(unreachable())
    }

    async fn install_snapshot(
        &mut self,
        _: InstallSnapshotRequest<Types>,
        _: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Refusal<RaftError<u64, InstallSnapshotError>>> {
        Err(unreachable())
    }

    async fn vote(
        &mut self,
        _: VoteRequest<u64>,
        _: RPCOption,
    ) -> Result<VoteResponse<u64>, Refusal<RaftError<u64>>> {
        Err(unreachable())
    }
}
