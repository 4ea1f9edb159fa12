mod choices;
mod endings;
mod enumeration;
pub mod lists;
mod random;
mod world;
