//! Stop strings in a stream: text that may be the beginning of one is held back until it is clear.

/// Watches streamed text for the first stop string.
#[derive(Debug, Clone, Default)]
pub struct StopMatcher {
    stops: Vec<String>,
    held: String,
}

/// What [`StopMatcher::push`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// Text that can be shown.
    pub text: String,
    /// The stop string that was met, if one was.
    pub stop: Option<String>,
}

impl StopMatcher {
    /// `stops` are not empty strings.
    pub fn new(stops: Vec<String>) -> Self {
        Self { stops, held: String::new() }
    }

    /// Takes more text and releases what cannot belong to a stop string.
    pub fn push(&mut self, text: &str) -> Released {
        self.held.push_str(text);
        let first = self.stops.iter().filter_map(|stop| Some((self.held.find(stop.as_str())?, stop)));
        // The earliest match ends the text; of two at the same place the longer one is meant.
        if let Some((at, stop)) = first.min_by_key(|(at, stop)| (*at, usize::MAX - stop.len())) {
            let stop = stop.clone();
            self.held.truncate(at);
            return Released { text: std::mem::take(&mut self.held), stop: Some(stop) };
        }
        let keep = self.longest_open_suffix();
        let rest = self.held.split_off(self.held.len() - keep);
        Released { text: std::mem::replace(&mut self.held, rest), stop: None }
    }

    /// Releases what was held back: the stream has ended.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Bytes at the end of `held` that are the beginning of a stop string.
    fn longest_open_suffix(&self) -> usize {
        let longest = self.stops.iter().map(String::len).max().unwrap_or(1) - 1;
        let from = self.held.len().saturating_sub(longest);
        (from..self.held.len())
            .filter(|start| self.held.is_char_boundary(*start))
            .find(|start| self.stops.iter().any(|stop| stop.starts_with(&self.held[*start..])))
            .map_or(0, |start| self.held.len() - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matcher(stops: &[&str]) -> StopMatcher {
        StopMatcher::new(stops.iter().map(|s| (*s).to_owned()).collect())
    }

    #[test]
    fn a_stop_that_straddles_pieces_is_found_and_never_shown() {
        let mut stop = matcher(&["\nUser:", "END"]);
        assert_eq!(stop.push("Hello\nUs"), Released { text: "Hello".into(), stop: None });
        assert_eq!(stop.push("er: hi"), Released { text: String::new(), stop: Some("\nUser:".into()) });
    }

    #[test]
    fn text_that_only_looked_like_a_stop_is_released() {
        let mut stop = matcher(&["END"]);
        assert_eq!(stop.push("the EN").text, "the ");
        assert_eq!(stop.push("Q").text, "ENQ");
        assert_eq!(stop.push("E").text, "");
        assert_eq!(stop.finish(), "E");
    }

    #[test]
    fn the_earliest_then_the_longest_stop_wins() {
        assert_eq!(matcher(&["b", "ab", "abc"]).push("xabc").stop.as_deref(), Some("abc"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]
        #[test]
        fn pieces_give_what_the_whole_text_gives(text in "[ab🙂]{0,24}", cuts in proptest::collection::vec(0usize..24, 0..6)) {
            let stops = ["ab🙂a", "bb", "🙂🙂"];
            let whole = stops.iter().filter_map(|s| text.find(s)).min().map_or(text.as_str(), |at| &text[..at]);
            let mut stop = matcher(&stops);
            let mut shown = String::new();
            let mut done = false;
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|c| text.is_char_boundary(*c)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                let released = stop.push(&text[pair[0]..pair[1]]);
                shown += &released.text;
                if released.stop.is_some() { done = true; break; }
            }
            if !done { shown += &stop.finish(); }
            prop_assert_eq!(shown, whole);
        }
    }
}
