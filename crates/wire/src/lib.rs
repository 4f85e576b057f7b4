//! The wire contract: what goes over the network, byte for byte.
//!
//! Here are the `.proto` files and the code generated from them ([`proto`]), the bytes that the
//! log keeps of a message ([`record`]) and how they go out again undecoded ([`delivery`] on the
//! compatible wire, [`stream`] on the native one), and the one place where a refusal becomes a
//! status code ([`status`]). What this crate leaves to others: deciding anything, listening,
//! storing.
//!
//! Law: the packages `danube`, `danube_schema` and `danube_admin` are exact, because the published
//! clients were built with them; nothing is ever added there. Additions go to
//! `danube.control.v1` and its neighbours of our own. A golden test pins every number and path.

pub mod convert;
pub mod delivery;
pub mod limit;
pub mod proto;
mod protobuf;
pub mod record;
pub mod status;
pub mod stream;
pub mod trace_context;

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    /// Every path, number and type of the contract. A difference in `danube`, `danube_schema` or
    /// `danube_admin` breaks clients that are out of our hands: mend the `.proto` file, not the
    /// table. In our own packages lines may be added, none changed.
    #[test]
    fn the_contract_is_pinned() {
        let contract = include_str!(concat!(env!("OUT_DIR"), "/contract.txt"));
        expect_file!["../contract.txt"].assert_eq(contract);
    }
}
