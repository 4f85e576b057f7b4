//! What a run of steps says: one line when a step starts, one when it ends, a summary at the end.
//!
//! Law: whoever reads only the last lines knows what failed and how to repeat it.

use std::time::Duration;

/// How one step ended.
#[derive(Debug)]
pub enum Ending {
    /// It held.
    Passed(Duration),
    /// It did not; the sentence says why.
    Failed(Duration, String),
    /// An earlier failure stopped the run before it.
    NotRun,
}

/// The steps of a run, in order, with their endings.
#[derive(Debug, Default)]
pub struct Report {
    steps: Vec<(&'static str, Ending)>,
}

impl Report {
    /// Announces a step; goes to stderr, so that it stands between what the commands print.
    pub fn start(&self, name: &str, about: &str) {
        eprintln!("\n== {name}: {about}");
    }

    /// Notes how `name` ended and says so.
    pub fn end(&mut self, name: &'static str, ending: Ending) {
        match &ending {
            Ending::Passed(took) => eprintln!("== {name}: ok, {}", seconds(*took)),
            Ending::Failed(took, why) => {
                eprintln!("== {name}: FAILED after {}: {why}", seconds(*took));
            }
            Ending::NotRun => {}
        }
        self.steps.push((name, ending));
    }

    /// Whether a step failed.
    pub fn failed(&self) -> bool {
        self.steps.iter().any(|(_, ending)| matches!(ending, Ending::Failed(..)))
    }

    /// The last words: a line per step, and for each failed one the command that repeats it.
    pub fn summary(&self) -> String {
        let mut text = String::from("\n== summary\n");
        for (name, ending) in &self.steps {
            let line = match ending {
                Ending::Passed(took) => format!("   ok       {name:<16} {}", seconds(*took)),
                Ending::Failed(took, _) => format!("   FAILED   {name:<16} {}", seconds(*took)),
                Ending::NotRun => format!("   not run  {name}"),
            };
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for (name, ending) in &self.steps {
            if let Ending::Failed(_, why) = ending {
                text.push_str(&format!("\n{name}: {why}\n"));
                text.push_str(&format!("repeat it with: cargo xtask verify {name}\n"));
            }
        }
        text
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_failed_and_how_to_repeat_it() {
        let mut report = Report::default();
        report.end("fmt", Ending::Passed(Duration::from_millis(1200)));
        assert!(!report.failed());
        report.end("clippy", Ending::Failed(Duration::from_secs(3), "exit code 1".into()));
        report.end("test", Ending::NotRun);
        assert!(report.failed());
        let text = report.summary();
        assert!(text.contains("ok       fmt"), "{text}");
        assert!(text.contains("not run  test"), "{text}");
        assert!(text.contains("clippy: exit code 1"), "{text}");
        assert!(text.ends_with("repeat it with: cargo xtask verify clippy\n"), "{text}");
    }
}
