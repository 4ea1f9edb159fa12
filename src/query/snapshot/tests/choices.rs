//! Decisions of a model, so that all its schedules can be enumerated, or drawn at random.

/// Source of decisions.
pub trait Choices {
    /// A number below `count`.
    fn choose(&mut self, count: usize) -> usize;
}

/// Walks all sequences of decisions, one run at a time.
#[derive(Default)]
pub struct Exhaustive {
    /// Decision and number of alternatives at each step of this run.
    path: Vec<(usize, usize)>,
    step: usize,
}

impl Choices for Exhaustive {
    fn choose(&mut self, count: usize) -> usize {
        if self.step == self.path.len() {
            self.path.push((0, count));
        }
        let (choice, _) = self.path[self.step];
        self.step += 1;
        choice
    }
}

impl Exhaustive {
    /// Goes back to the beginning of the same sequence.
    pub fn rewind(&mut self) {
        self.step = 0;
    }

    /// Goes to the next sequence. False after the last one.
    pub fn advance(&mut self) -> bool {
        self.step = 0;
        while let Some((choice, count)) = self.path.pop() {
            if choice + 1 < count {
                self.path.push((choice + 1, count));
                return true;
            }
        }
        false
    }
}

impl Choices for fastrand::Rng {
    fn choose(&mut self, count: usize) -> usize {
        self.usize(..count)
    }
}
