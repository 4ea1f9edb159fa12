mod bounded;
mod enumeration;
mod gaps;
mod world;
