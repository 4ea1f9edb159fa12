mod choices;
mod enumeration;
mod random;
mod world;
