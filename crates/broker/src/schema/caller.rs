//! Who asks, for the history of what was changed.
//!
//! A name that a caller gives is written down with the address it came from, because a name alone
//! proves nothing.

use tonic::Request;

/// The header in which our own tools say who uses them.
const ACTOR_HEADER: &str = "x-danube-actor";
/// Characters of such a name that are kept.
const ACTOR_LEN_MAX: usize = 64;

/// Who asks, as far as the broker knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    name: Option<String>,
    address: Option<String>,
}

impl Caller {
    /// Who sent `request`.
    pub(crate) fn of<T>(request: &Request<T>) -> Caller {
        let name = request.metadata().get(ACTOR_HEADER).and_then(|value| value.to_str().ok());
        let address = request.remote_addr().map(|address| address.ip().to_string());
        Caller { name: name.and_then(cleaned), address }
    }

    /// The sentence for a history: who they are, or else who they say made the thing.
    pub(crate) fn by(&self, says: &str) -> String {
        let name = self.name.clone().or_else(|| cleaned(says));
        match (name, &self.address) {
            (Some(name), Some(address)) => format!("{name} from {address}"),
            (Some(name), None) => name,
            (None, Some(address)) => address.clone(),
            (None, None) => "unknown".to_owned(),
        }
    }
}

fn cleaned(name: &str) -> Option<String> {
    let name: String =
        name.trim().chars().filter(|c| !c.is_control()).take(ACTOR_LEN_MAX).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_down_with_its_address() {
        let mut request = Request::new(());
        assert_eq!(Caller::of(&request).by(""), "unknown");
        assert_eq!(Caller::of(&request).by("danube-py"), "danube-py");
        request.metadata_mut().insert(ACTOR_HEADER, "ann".parse().expect("text"));
        let caller = Caller { address: Some("10.0.0.7".into()), ..Caller::of(&request) };
        assert_eq!(caller.by("danube-py"), "ann from 10.0.0.7");
        assert_eq!(Caller { name: None, ..caller }.by("\n"), "10.0.0.7");
    }
}
