//! Which topics and subscriptions have series of their own, so that twenty thousand of them do not
//! make a scrape of a million lines.
//!
//! The busiest have series of their own and the others are summed in one. Everything counted is in
//! exactly one of the two at any time, and both only grow: what a topic counted before it got a
//! series of its own stays in the sum, and what it counted in its own series stays there when it
//! loses it. So a rate over all series is right whoever moves.
//!
//! Law: pure; the time of a look comes in as an argument.

use super::numbers::Counted;
use std::cmp::Ordering;
use std::time::Duration;

/// Time after which traffic counts half.
const HALF_LIFE: Duration = Duration::from_secs(600);
/// Who has a series of its own keeps it until another has so many times its traffic.
const STICKINESS: f64 = 2.0;

/// What is remembered of one topic or subscription from look to look.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Traffic, of which older counts less.
    score: f64,
    /// Traffic in all, at the last look.
    seen: u64,
    /// Whether somebody should look at it, busy or not.
    troubled: bool,
    /// Whether it has series of its own.
    own: bool,
    /// Whether that was ever decided.
    placed: bool,
    /// What it counted that is shown in the other place: in the sum while it has series of its
    /// own, in those while it has none.
    elsewhere: Counted,
}

impl Standing {
    /// Takes in how much traffic there has been in all, and whether something is wrong.
    pub(super) fn look(&mut self, traffic: u64, troubled: bool, passed: Duration) {
        let halvings = passed.as_secs_f64() / HALF_LIFE.as_secs_f64();
        let fresh = traffic.saturating_sub(self.seen);
        self.score = self.score * (-halvings).exp2() + fresh as f64;
        self.seen = traffic;
        self.troubled = troubled;
    }

    /// Gives or takes its own series; it has counted `counted` so far.
    pub(super) fn place(&mut self, own: bool, counted: &Counted) {
        if self.placed && self.own != own {
            // What was in the one place stays there, which is now the other.
            self.elsewhere = counted.without(&self.elsewhere);
        }
        (self.own, self.placed) = (own, true);
    }

    /// Of what it has counted, what is shown in its own series and what in the sum.
    pub(super) fn split(&self, counted: &Counted) -> (Counted, Counted) {
        let here = counted.without(&self.elsewhere);
        if self.own { (here, self.elsewhere.clone()) } else { (self.elsewhere.clone(), here) }
    }

    fn weight(&self) -> f64 {
        if self.own { self.score * STICKINESS } else { self.score }
    }
}

/// Which of `standings` are to have series of their own, at most `max`: the busiest, and of those in
/// trouble up to a quarter of `max` before them.
pub(super) fn choose(standings: &[&Standing], max: usize) -> Vec<bool> {
    if standings.len() <= max {
        return vec![true; standings.len()];
    }
    let mut own = vec![false; standings.len()];
    let (mut troubled, mut others): (Vec<usize>, Vec<usize>) =
        (0..standings.len()).partition(|index| standings[*index].troubled);
    let first = heaviest(standings, &mut troubled, max / 4);
    others.extend(troubled.split_off(first));
    let second = heaviest(standings, &mut others, max - first);
    troubled.iter().chain(&others[..second]).for_each(|index| own[*index] = true);
    own
}

/// Brings the heaviest `max` of `indices` to the front; answers how many there are.
fn heaviest(standings: &[&Standing], indices: &mut [usize], max: usize) -> usize {
    if max == 0 || indices.len() <= max {
        return indices.len().min(max);
    }
    indices.select_nth_unstable_by(max - 1, |a, b| {
        let (first, second) = (standings[*a], standings[*b]);
        let by_weight = second.weight().partial_cmp(&first.weight()).unwrap_or(Ordering::Equal);
        by_weight.then_with(|| second.own.cmp(&first.own)).then_with(|| a.cmp(b))
    });
    max
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_traffic(traffic: u64) -> Standing {
        let mut standing = Standing::default();
        standing.look(traffic, false, Duration::ZERO);
        standing
    }

    fn counted(count: u64) -> Counted {
        Counted { counters: vec![count], histograms: Vec::new() }
    }

    #[test]
    fn the_busiest_are_chosen_and_stay_until_another_is_twice_as_busy() {
        let mut standings = [with_traffic(5), with_traffic(9), with_traffic(7)];
        let chosen = |standings: &[Standing]| choose(&standings.iter().collect::<Vec<_>>(), 2);
        assert_eq!(chosen(&standings), [false, true, true]);
        standings[1].own = true;
        standings[2].own = true;
        standings[0].look(5 + 8, false, Duration::ZERO);
        assert_eq!(chosen(&standings), [false, true, true], "13 is not twice 7");
        standings[0].look(5 + 8 + 2, false, Duration::ZERO);
        assert_eq!(chosen(&standings), [true, true, false]);
        assert_eq!(choose(&[&standings[0]], 2), [true]);
        assert_eq!(choose(&[&standings[0]], 0), [false]);
    }

    #[test]
    fn a_quarter_of_the_places_is_for_those_in_trouble() {
        let mut standings: Vec<Standing> = (0..10).map(|_| with_traffic(100)).collect();
        for quiet in &mut standings[5..8] {
            *quiet = Standing::default();
            quiet.look(0, true, Duration::ZERO);
        }
        let own = choose(&standings.iter().collect::<Vec<_>>(), 4);
        assert_eq!(own.iter().filter(|own| **own).count(), 4);
        assert_eq!(own[5..8].iter().filter(|own| **own).count(), 1);
    }

    #[test]
    fn old_traffic_counts_less() {
        let mut standing = with_traffic(100);
        standing.look(100, false, HALF_LIFE);
        assert!((standing.score - 50.0).abs() < 1e-9);
    }

    #[test]
    fn what_was_counted_before_the_first_look_goes_where_the_rest_goes() {
        let mut standing = Standing::default();
        standing.place(true, &counted(10));
        assert_eq!(standing.split(&counted(12)), (counted(12), Counted::default()));
    }

    #[test]
    fn everything_is_in_one_place_and_both_only_grow() {
        let mut standing = Standing::default();
        standing.place(false, &counted(4));
        assert_eq!(standing.split(&counted(10)), (Counted::default(), counted(10)));
        standing.place(true, &counted(10));
        assert_eq!(standing.split(&counted(13)), (counted(3), counted(10)));
        standing.place(true, &counted(13));
        assert_eq!(standing.split(&counted(14)), (counted(4), counted(10)));
        standing.place(false, &counted(15));
        assert_eq!(standing.split(&counted(20)), (counted(5), counted(15)));
        standing.place(true, &counted(20));
        assert_eq!(standing.split(&counted(21)), (counted(6), counted(15)));
    }
}
