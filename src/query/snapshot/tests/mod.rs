mod choices;
mod endings;
mod enumeration;
pub mod lists;
mod locating;
mod random;
mod world;
