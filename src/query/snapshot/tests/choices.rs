//! Decisions of a model, so that all its schedules can be enumerated, or drawn at random.

/// Source of decisions.
pub trait Choices {
    /// A number below `count`.
    fn choose(&mut self, count: usize) -> usize;
}

/// Walks all sequences of decisions of one step, one at a time.
#[derive(Default)]
pub struct Exhaustive {
    /// Decision and number of alternatives, in the order in which they came up.
    path: Vec<(usize, usize)>,
    next: usize,
}

impl Choices for Exhaustive {
    fn choose(&mut self, count: usize) -> usize {
        if self.next == self.path.len() {
            self.path.push((0, count));
        }
        let (choice, _) = self.path[self.next];
        self.next += 1;
        choice
    }
}

impl Exhaustive {
    /// Makes these decisions.
    pub fn repeating(decisions: &[usize]) -> Self {
        Self { path: decisions.iter().map(|choice| (*choice, 0)).collect(), next: 0 }
    }

    pub fn decisions(&self) -> impl Iterator<Item = usize> {
        self.path.iter().map(|(choice, _)| *choice)
    }

    /// Goes to the next sequence. False after the last one.
    pub fn advance(&mut self) -> bool {
        self.next = 0;
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
