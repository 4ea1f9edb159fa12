mod choices;
mod endings;
mod enumeration;
mod evidence;
mod growth;
pub mod lists;
mod locating;
mod random;
mod world;
