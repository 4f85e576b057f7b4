//! Whether there is time for what nobody waits for: while writes that wait for a sync come one at a time.
//!
//! Law: a few that met by chance do not end it, as the next one often comes while the last is answered;
//! more than that does.

/// Most lone writes that are remembered.
const LONE_MAX: u32 = 64;
/// So many of them are forgotten for each group that was none.
const LESS: u32 = 16;

/// How many of the groups before were one write, at most [`LONE_MAX`], less those that were not.
#[derive(Debug, Default)]
pub(super) struct Calm(u32);

impl Calm {
    /// Takes note of a group: whether it was one write with a sync, or none, whatever waits behind it.
    pub fn note(&mut self, lone: bool) {
        self.0 = if lone { (self.0 + 1).min(LONE_MAX) } else { self.0.saturating_sub(LESS) };
    }

    /// Whether it is so.
    pub fn is_calm(&self) -> bool {
        self.0 >= LESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_calm_after_some_and_until_there_is_more_than_a_little_company() {
        let mut calm = Calm::default();
        (1..LESS).for_each(|_| calm.note(true));
        assert!(!calm.is_calm());
        (0..LONE_MAX).for_each(|_| calm.note(true));
        (0..3).for_each(|_| calm.note(false));
        assert!(calm.is_calm());
        calm.note(false);
        assert!(!calm.is_calm());
    }
}
