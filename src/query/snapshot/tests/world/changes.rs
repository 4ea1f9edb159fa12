//! Changes of the list of a `World` between two responses.

use super::super::bounds::Rates;
use super::super::choices::Choices;
use super::World;

impl World {
    /// Changes the list between two responses.
    pub(super) fn change(&mut self, choices: &mut dyn Choices) {
        if let Some(rates) = self.bounds.rates {
            return self.change_at(rates, choices);
        }
        let (max_growth, at_once) = self.bounds.growth;
        let grown = choices.choose(at_once.min(max_growth - self.added) + 1);
        // A loss or a reorganization may come before or after the growth.
        let may_damage = self.lost < self.bounds.losses || self.reorganized < self.bounds.reorganizations;
        let is_first = grown > 0 && may_damage && choices.choose(2) == 1;
        if is_first {
            self.damage(choices);
        }
        for _ in 0..grown {
            let record = self.new_record(choices);
            self.list.insert(0, record);
            self.states.push(self.list.clone());
        }
        self.added += grown;
        if !is_first {
            self.damage(choices);
        }
    }

    fn change_at(&mut self, rates: Rates, choices: &mut dyn Choices) {
        let grown = if rates.is_steady { rates.growth } else { choices.choose(rates.growth + 1) };
        let is_reorganized = rates.reorganization > 0 && choices.choose(rates.reorganization) == 0;
        let depth = if is_reorganized { (1 + choices.choose(rates.depth)).min(self.list.len()) } else { 0 };
        self.list.drain(..depth);
        for _ in 0..depth + grown {
            let record = self.new_record(choices);
            self.list.insert(0, record);
        }
        if depth + grown > 0 {
            self.states.push(self.list.clone());
        }
    }

    fn damage(&mut self, choices: &mut dyn Choices) {
        if self.lost < self.bounds.losses {
            let lost = choices.choose(self.list.len() + 1);
            if lost > 0 {
                self.lost += 1;
                let record = self.list.remove(lost - 1);
                self.note(|| format!("lost {}", record.key));
                self.states.push(self.list.clone());
            }
        }
        if self.reorganized < self.bounds.reorganizations {
            let max_depth = if self.bounds.shallow {
                self.list.iter().rposition(|record| self.returned.contains(&record.id)).unwrap_or(0)
            } else {
                self.list.len()
            };
            let depth = choices.choose(max_depth + 1);
            if depth > 0 {
                self.reorganized += 1;
                let count = depth - 1 + choices.choose(3);
                self.list.drain(..depth);
                for _ in 0..count {
                    let record = self.new_record(choices);
                    self.list.insert(0, record);
                }
                self.note(|| format!("replaced {depth} by {count}"));
                self.states.push(self.list.clone());
            }
        }
    }
}
