mod bounded;
mod enumeration;
mod gaps;
mod repeats;
mod world;
