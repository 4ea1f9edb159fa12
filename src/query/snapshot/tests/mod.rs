mod choices;
mod endings;
mod enumeration;
mod evidence;
pub mod lists;
mod locating;
mod random;
mod world;
